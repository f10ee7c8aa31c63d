"""Score lineage: appending adjustments, and rows that take another row's score (digest a section 1.4).

A final score is its base score plus an ordered list of adjustments, so that anyone can replay it. A
memory brought in as context has no base score of its own: it takes its trigger's whole lineage and
one more step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import Adjustment, Path, code
from prme_ray.model.tables import ADJUSTMENT, SCORED, bools, column, floats, joined_references, picked
from stages.columns import Rows, by_score

__all__ = ["Expanded", "Inheritance", "append_adjustments"]

_STEP_FIELDS = list(ADJUSTMENT)


@dataclass(frozen=True, slots=True)
class Expanded:
    """What a context stage returns.

    Attributes:
        table: SCORED, in rank order.
        added: Ids that were not in the input, in rank order.
        changed: Whether the stage touched any row. When false, ``table`` is the input.
        removed: Ids that projection replaced by their sources, in the input's order.
    """

    table: pa.Table
    added: tuple[str, ...] = ()
    changed: bool = False
    removed: tuple[str, ...] = ()


def append_adjustments(
    adjustments: pa.ListArray,
    rows: Rows,
    *,
    kind: Adjustment,
    coefficients: npt.NDArray[np.float64],
    sources: pa.Array,
    neural: npt.NDArray[np.float64] | None = None,
) -> pa.ListArray:
    """Append one step to the lists of some rows.

    Args:
        adjustments: A SCORED table's ``adjustments``, n lists.
        rows: The k rows that get a step: ascending, without repeats.
        kind: What the step is.
        coefficients: Its number, shape (k,).
        sources: Id of the memory each step came from, length k.
        neural: Cross-encoder scores, shape (k,), for ``neural_blend`` only.

    Returns:
        n lists; the lists of other rows are unchanged.
    """
    size = len(rows)
    step = pa.StructArray.from_arrays(
        [
            pa.array(np.full(size, code(kind), dtype=np.int8)),
            pa.array(coefficients, pa.float64()),
            sources,
            pa.nulls(size, pa.float64()) if neural is None else pa.array(neural, pa.float64()),
        ],
        fields=_STEP_FIELDS,
    )
    starts = adjustments.offsets.to_numpy().astype(np.int64)
    joins = np.zeros(len(adjustments), dtype=np.int64)
    joins[rows] = 1
    offsets = (starts - starts[0]) + np.concatenate(([0], np.cumsum(joins)))
    old = adjustments.values.slice(int(starts[0]), int(starts[-1] - starts[0]))
    if len(old):
        # A row's new step stands at the end of its list; every other place is an old step, in order.
        source = np.empty(len(old) + size, dtype=np.int64)
        is_new = np.zeros(len(source), dtype=bool)
        is_new[offsets[rows + 1] - 1] = True
        source[is_new] = np.arange(len(old), len(source))
        source[~is_new] = np.arange(len(old))
        step = pa.concat_arrays([old, step]).take(pa.array(source))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), step, type=adjustments.type)


class Inheritance:
    """Working state of a context stage: the input's rows, then the new ones, as NumPy columns.

    With n input rows and m new ones every array has the shape (n + m,).

    Attributes:
        scores: Composite scores; 0 for new rows until they inherit one.
        context: Largest relevance of the memories that brought a row in.
        paths: Path masks.
        counts: Path counts.
        origin: Input row whose lineage a row carries: its own until it inherits, -1 for new rows.
        decay: Share of the origin's score; NaN where nothing was inherited.
        trigger_ids: ``session_trigger_id``, or ``None`` to leave the column alone.
        offsets: ``session_offset``, likewise.
    """

    def __init__(self, scored: pa.Table, pool: pa.DictionaryArray, new: Rows, path: Path) -> None:
        """Start from SCORED rows and memories to add.

        Args:
            scored: SCORED, n rows.
            pool: References to memories, the ones to add among them.
            new: Their m places in ``pool``.
            path: The stage's path; new rows start on it alone.
        """
        size = len(new)
        self._scored = scored
        self._path = path
        self._nodes = joined_references(column(scored, "node"), picked(pool, new))
        self.scores = np.concatenate([floats(scored, "composite_score"), np.zeros(size)])
        self.context = np.concatenate([floats(scored, "context_relevance"), np.zeros(size)])
        self.paths = np.concatenate([column(scored, "paths").to_numpy(), np.full(size, path.bit, dtype=np.int16)])
        self.counts = np.concatenate([column(scored, "path_count").to_numpy(), np.ones(size, dtype=np.int16)])
        self.origin: Rows = np.concatenate([np.arange(scored.num_rows), np.full(size, -1)])
        self.decay = np.full(scored.num_rows + size, np.nan)
        self.trigger_ids: pa.Array | None = None
        self.offsets: pa.Array | None = None

    def join(self, rows: Rows, *, count: bool) -> None:
        """Add the stage's path to rows (without repeats); with ``count``, those that join it also count it."""
        rows = rows[(self.paths[rows] & self._path.bit) == 0]
        self.paths[rows] |= self._path.bit
        if count:
            self.counts[rows] += 1

    def inherit(self, rows: Rows, origin: Rows, scores: npt.NDArray[np.float64], decay: Any) -> None:
        """Give rows (without repeats) the decayed scores and the lineages of ``origin``."""
        self.scores[rows] = scores
        self.origin[rows] = origin
        self.decay[rows] = decay

    def finish(self, kind: Adjustment, *, keep: Rows | None = None, always_sort: bool = False) -> Expanded:
        """Return the list in rank order: sorted anew where a score changed or a row was added.

        Args:
            kind: The adjustment that inherited scores get.
            keep: Rows that stay; ``None`` keeps all. All of them must have a lineage.
            always_sort: Sort also where no score changed.
        """
        inherited = ~np.isnan(self.decay)
        order = np.arange(len(inherited)) if keep is None else keep
        if always_sort or inherited.any():
            before = order
            order = before[by_score(self.scores[before], lambda places: self._ids(before[places]))]
        columns = {"node": picked(self._nodes, order)}
        columns |= self._signals(order, inherited[order])
        columns |= self._lineage(kind, order, inherited[order])
        table = pa.Table.from_arrays([columns[name] for name in SCORED.names], schema=SCORED)
        new = order[order >= self._scored.num_rows]
        added = tuple(self._ids(new).to_pylist()) if len(new) else ()
        return Expanded(table, added, changed=True)

    def _ids(self, rows: Rows) -> pa.Array:
        taken = self._nodes.indices.to_numpy()[rows]
        return self._nodes.dictionary.field("node_id").take(pa.array(taken))

    def _signals(self, order: Rows, inherited: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Return the columns between the node record and the lineage."""
        new = order >= self._scored.num_rows
        added = bool(new.any())
        source = np.where(new, 0, order) if added else order
        columns: dict[str, pa.Array] = {}
        for name in ("semantic_score", "lexical_score", "graph_proximity"):
            values = floats(self._scored, name)[source]
            columns[name] = pa.array(np.where(new, 0.0, values) if added else values)
        own_trace = bools(self._scored, "has_own_trace")[source] & ~inherited
        columns |= {
            "paths": pa.array(self.paths[order]),
            "path_count": pa.array(self.counts[order]),
            "composite_score": pa.array(self.scores[order]),
            "context_relevance": pa.array(self.context[order]),
            "has_own_trace": pa.array(own_trace),
            # The cross-encoder did not give an inherited score.
            "reranker_score": self._kept("reranker_score", order, new | inherited),
            "semantic_relevance": self._kept("semantic_relevance", order, new),
            "contradicts_id": self._kept("contradicts_id", order, new),
        }
        for name, given in (("session_trigger_id", self.trigger_ids), ("session_offset", self.offsets)):
            columns[name] = self._kept(name, order, new) if given is None else given.take(pa.array(order))
        return columns

    def _kept(self, name: str, order: Rows, cleared: npt.NDArray[np.bool_]) -> pa.Array:
        """Return an input column in the new order, null where ``cleared``."""
        values = column(self._scored, name)
        if values.null_count == len(values):
            return pa.nulls(len(order), values.type)
        return values.take(pa.array(order, mask=cleared))

    def _lineage(self, kind: Adjustment, order: Rows, inherited: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        # An inherited score carries its origin's lineage: only the reference is copied.
        origin = self.origin[order]
        steps = column(self._scored, "adjustments")
        if len(steps.values):
            steps = steps.take(pa.array(origin))
        elif len(steps) != len(order):
            steps = pa.ListArray.from_arrays(
                pa.array(np.zeros(len(order) + 1, np.int32)), steps.values, type=steps.type
            )
        rows = np.flatnonzero(inherited)
        if len(rows):
            steps = append_adjustments(
                steps,
                rows,
                kind=kind,
                coefficients=self.decay[order[rows]],
                sources=self._ids(origin[rows]),
            )
        return {"lineage": picked(column(self._scored, "lineage"), origin), "adjustments": steps}
