"""Candidates as records, made from the table only when somebody looks at them.

A response usually carries hundreds of candidates and a caller reads ten; building them all is what
makes such a response slow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import pyarrow as pa

from prme_ray.arguments import BINDINGS_KEY
from prme_ray.model.enums import (
    Adjustment,
    EpistemicType,
    LifecycleState,
    NodeType,
    Scope,
    SourceType,
    member,
    path_names,
)
from prme_ray.model.nodes import SPEAKER_KEY
from prme_ray.model.response import AdjustmentStep, Candidate, Exclusion, Lineage, RankFusion, SessionLink, Trace
from prme_ray.model.tables import column, ids_at, parts, records
from stages.pack import Packed

__all__ = ["RESERVED", "Candidates", "Exclusions"]

RESERVED = (SPEAKER_KEY, BINDINGS_KEY)
"""Metadata keys that are told in fields of their own."""
_RANK_FUSION = 2


class Candidates(Sequence[Candidate]):
    """Ranked candidates, best first: a read-only sequence over a ``SCORED`` table.

    Attributes:
        table: The Arrow table behind it, one row a candidate.
        levels: Packed id -> representation level.
        token_costs: Packed id -> tokens of its line.
        default_reasons: Why DEFAULT would have dropped each row; ``None`` unless in AUDIT.
    """

    def __init__(
        self, table: pa.Table, *, packed: Packed | None = None, default_reasons: Sequence[str | None] | None = None
    ) -> None:
        self.table = table
        self.levels: Mapping[str, str] = {} if packed is None else packed.levels
        self.token_costs: Mapping[str, int] = {} if packed is None else packed.token_costs
        self.default_reasons = default_reasons

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        if isinstance(index, slice):
            return [self._build(position) for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(index)
        return self._build(position)

    def __iter__(self) -> Iterator[Candidate]:
        for position in range(len(self)):
            yield self._build(position)

    @property
    def ids(self) -> list[str]:
        """Ids in rank order, without building the records."""
        rows, memories = parts(column(self.table, "node"))
        return ids_at(memories, rows)

    def find(self, node_id: str) -> Candidate | None:
        """Return the candidate with this id, or ``None``."""
        ids = self.ids
        return self._build(ids.index(node_id)) if node_id in ids else None

    def _build(self, position: int) -> Candidate:
        row = records(self.table.slice(position, 1))[0]
        node_id = row["node_id"]
        metadata = json.loads(row["metadata"]) if row["metadata"] else {}
        public = {key: value for key, value in metadata.items() if key not in RESERVED}
        return Candidate(
            node_id=node_id,
            content=row["content"],
            node_type=member(NodeType, row["node_type"]),
            lifecycle_state=member(LifecycleState, row["lifecycle_state"]),
            epistemic_type=member(EpistemicType, row["epistemic_type"]),
            source_type=member(SourceType, row["source_type"]),
            scope=member(Scope, row["scope"]),
            confidence=row["confidence"],
            salience=row["salience"],
            pinned=row["pinned"],
            session_id=row["session_id"],
            speaker=row["speaker"],
            event_time=row["event_time"],
            created_at=row["created_at"],
            valid_from=row["valid_from"],
            valid_to=row["valid_to"],
            evidence_refs=row["evidence"].split(",") if row["evidence"] else [],
            metadata=public or None,
            score=row["composite_score"],
            semantic_relevance=row["semantic_relevance"],
            paths=list(path_names(row["paths"])),
            path_count=row["path_count"],
            semantic_score=row["semantic_score"],
            lexical_score=row["lexical_score"],
            graph_proximity=row["graph_proximity"],
            has_own_trace=row["has_own_trace"],
            lineage=_lineage(row),
            reranker_score=row["reranker_score"],
            session_context_link=_link(row),
            conflict_flag=row["contradicts_id"] is not None,
            contradicts_id=row["contradicts_id"],
            representation=self.levels.get(node_id),
            token_cost=self.token_costs.get(node_id),
            in_context=node_id in self.levels,
            default_exclusion=None if self.default_reasons is None else self.default_reasons[position],
        )


def _link(row: dict[str, Any]) -> SessionLink | None:
    if row["session_trigger_id"] is None:
        return None
    return SessionLink(trigger_id=row["session_trigger_id"], offset=row["session_offset"])


def _lineage(row: dict[str, Any]) -> Lineage:
    fusion = None
    if row["formula_version"] == _RANK_FUSION:
        fusion = RankFusion(
            semantic_rank=row["semantic_rank"],
            lexical_rank=row["lexical_rank"],
            epistemic_factor=row["epistemic_factor"],
            node_type_factor=row["node_type_factor"],
            temporal_factor=row["temporal_factor"],
            recency_boost_factor=row["recency_factor"],
            tie_break=row["tie_break"],
        )
    return Lineage(
        formula_version=row["formula_version"],
        base_node_id=row["base_node_id"],
        trace=Trace(
            semantic_similarity=row["trace_semantic"],
            lexical_relevance=row["trace_lexical"],
            graph_proximity=row["trace_graph"],
            recency_factor=row["trace_recency"],
            salience=row["trace_salience"],
            confidence=row["trace_confidence"],
            epistemic_weight=row["trace_epistemic"],
            path_score=row["trace_path"],
            temporal_affinity=row["trace_temporal"],
            node_type_boost=row["trace_node_type"],
            composite_score=row["base_score"],
        ),
        rank_fusion=fusion,
        adjustments=[
            AdjustmentStep(
                kind=member(Adjustment, step["kind"]),
                coefficient=step["coefficient"],
                source_node_id=step["source_node_id"],
                neural_score=step["neural_score"],
            )
            for step in row["adjustments"]
        ],
    )


class Exclusions(Sequence[Exclusion]):
    """What was generated and left out before packing, in the order decided; same laziness."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Exclusion: ...
    @overload
    def __getitem__(self, index: slice) -> list[Exclusion]: ...
    def __getitem__(self, index: int | slice) -> Exclusion | list[Exclusion]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(index)
        return Exclusion(**self.table.slice(position, 1).to_pylist()[0])

    def counts(self) -> dict[str, int]:
        """Return how many were left out for each reason, most frequent first, then by name."""
        found: dict[str, int] = {}
        if not len(self):
            return found
        for reason in self.table.column("reason").to_pylist():
            found[reason] = found.get(reason, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
