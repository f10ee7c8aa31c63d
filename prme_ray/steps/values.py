"""What passes between steps besides Arrow tables: small frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from prme_ray.model.enums import Path, Scope
from prme_ray.model.protocols import TokenCounter
from prme_ray.model.tables import no_exclusions
from stages.line_cache import LineCache
from storage.records import Filters

__all__ = ["Allowed", "HintPool", "Kept", "Plan", "Scans", "Selection", "Tools", "joined"]


@dataclass(frozen=True, slots=True)
class Tools:
    """What the packing step borrows from its process: a token counter and its cache of lines."""

    counter: TokenCounter
    lines: LineCache


@dataclass(frozen=True, slots=True)
class Plan:
    """What the channels are asked for; they get nothing else, in this process or in another.

    Attributes:
        query: The words searched for.
        filters: What the request may see.
        closed: Channel -> scopes it may not search, by policy.
        window_filters: The same without times: a turn's neighbours are counted among all there are.
        hint_filters: The same without scopes; ``None`` when no hints are wanted.
        vector_k: Most vector hits (widened on count and list questions).
        lexical_k: Most lexical hits.
        graph_k: Most graph hits.
        keywords: Terms of the keyword scan; empty but for count and list questions.
        names: Entity names of the question.
        hops: Longest path through the graph.
        min_edge_confidence: Least confidence of an edge on a path.
        pinned_limit: Most memories of each pinned kind.
        hint_k: Most hits of each search for hints.
    """

    query: str
    filters: Filters
    closed: Mapping[str, frozenset[Scope]]
    window_filters: Filters
    hint_filters: Filters | None
    vector_k: int
    lexical_k: int
    graph_k: int
    keywords: tuple[str, ...]
    names: tuple[str, ...]
    hops: int
    min_edge_confidence: float
    pinned_limit: int
    hint_k: int

    def open_to(self, channel: Path, filters: Filters | None = None) -> Filters:
        """Return what a channel may search: ``filters`` (the request's when left out) less the closed scopes."""
        filters = self.filters if filters is None else filters
        closed = self.closed.get(channel)
        if not closed:
            return filters
        return replace(filters, scopes=(frozenset(Scope) if filters.scopes is None else filters.scopes) - closed)


@dataclass(frozen=True, slots=True)
class Scans:
    """Hits of the extra lexical searches, one table a term."""

    keywords: tuple[pa.Table, ...] = ()
    entities: tuple[pa.Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """A table and what a step left out of it so far, in order."""

    table: pa.Table
    excluded: pa.Table = field(default_factory=no_exclusions)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The rows that pass the filters, and what those by type and by state left out."""

    table: pa.Table
    by_type: pa.Table
    by_state: pa.Table


@dataclass(frozen=True, slots=True)
class Selection:
    """Candidates the packer may use, and the hints beside them."""

    table: pa.Table
    excluded: pa.Table
    hints: pa.Table
    min_score_skipped: bool


@dataclass(frozen=True, slots=True)
class HintPool:
    """Hits without a scope restriction, and the memories behind them."""

    vector: pa.Table
    lexical: pa.Table
    nodes: pa.Table


def joined(*tables: pa.Table) -> pa.Table:
    """Return the rows of tables of one schema, in order; none is copied when at most one has rows."""
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled) if len(filled) > 1 else (filled[0] if filled else tables[0])
