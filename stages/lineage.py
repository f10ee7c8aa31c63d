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
from prme_ray.model.tables import (
    ADJUSTMENT,
    SCORED,
    bools,
    built,
    column,
    floats,
    id_ranks,
    ids_at,
    joined_parts,
    picked,
    referring,
    shorts,
)
from stages.columns import Rows, by_score, constant

__all__ = ["Expanded", "Inheritance", "append_adjustments"]

_STEP_FIELDS = list(ADJUSTMENT)
_FLOAT = pa.float64()


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
    count: int,
    kind: Adjustment,
    coefficients: npt.NDArray[np.float64],
    sources: pa.Array,
    neural: npt.NDArray[np.float64] | None = None,
) -> pa.ListArray:
    """Append one step to the lists of some rows.

    Args:
        adjustments: A SCORED table's ``adjustments``, n lists; any number of lists when all are empty.
        rows: The k rows that get a step: ascending, without repeats.
        count: How many lists there are, n.
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
            constant(None, _FLOAT, size) if neural is None else pa.array(neural, pa.float64()),
        ],
        fields=_STEP_FIELDS,
    )
    joins = np.zeros(count + 1, dtype=np.int64)
    joins[rows + 1] = 1
    offsets = np.cumsum(joins)
    if len(adjustments.values):
        starts = adjustments.offsets.to_numpy().astype(np.int64)
        offsets += starts - starts[0]
        old = adjustments.values.slice(int(starts[0]), int(starts[-1] - starts[0]))
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
        self._bit = path.bit
        self._rows, self._memories = joined_parts(column(scored, "node"), pool, new)
        self.scores = _extended(floats(scored, "composite_score"), 0.0, size)
        self.context = _extended(floats(scored, "context_relevance"), 0.0, size)
        self.paths = _extended(shorts(scored, "paths"), self._bit, size)
        self.counts = _extended(shorts(scored, "path_count"), 1, size)
        self.origin: Rows = _extended(np.arange(scored.num_rows), -1, size)
        self.decay = np.full(scored.num_rows + size, np.nan)
        self.trigger_ids: pa.Array | None = None
        self.offsets: pa.Array | None = None

    def join(self, rows: Rows, *, count: bool) -> None:
        """Add the stage's path to rows; with ``count``, those that join it count it, once if named twice."""
        rows = rows[(self.paths[rows] & self._bit) == 0]
        self.paths[rows] |= self._bit
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
            order = order[by_score(self.scores[order], id_ranks(self._memories)[self._rows[order]])]
        inherited = inherited[order]
        columns = {"node": referring(self._rows[order], self._memories)}
        columns |= self._signals(order, inherited)
        columns |= self._lineage(kind, order, inherited)
        new = order[order >= self._scored.num_rows]
        return Expanded(built(SCORED, columns), tuple(self._ids(new)), changed=True)

    def _ids(self, rows: Rows) -> list[str]:
        return ids_at(self._memories, self._rows[rows]) if len(rows) else []

    def _signals(self, order: Rows, inherited: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the columns between the node record and the lineage."""
        new = order >= self._scored.num_rows
        added = bool(new.any())
        source = np.where(new, 0, order) if added else order
        columns: dict[str, Any] = {}
        for name in ("semantic_score", "lexical_score", "graph_proximity"):
            values = floats(self._scored, name)[source]
            columns[name] = np.where(new, 0.0, values) if added else values
        own_trace = bools(self._scored, "has_own_trace")[source] & ~inherited
        columns |= {
            "paths": self.paths[order],
            "path_count": self.counts[order],
            "composite_score": self.scores[order],
            "context_relevance": self.context[order],
            "has_own_trace": own_trace,
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
            return constant(None, values.type, len(order))
        return values.take(pa.array(order, mask=cleared))

    def _lineage(self, kind: Adjustment, order: Rows, inherited: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        # An inherited score carries its origin's lineage: only the reference is copied.
        origin = self.origin[order]
        steps = column(self._scored, "adjustments")
        if len(steps.values):
            steps = steps.take(pa.array(origin))
        rows = np.flatnonzero(inherited)
        if len(rows) or len(steps) != len(order):
            steps = append_adjustments(
                steps,
                rows,
                count=len(order),
                kind=kind,
                coefficients=self.decay[order[rows]],
                sources=pa.array(self._ids(origin[rows]), pa.string()),
            )
        return {"lineage": picked(column(self._scored, "lineage"), origin), "adjustments": steps}


def _extended(values: npt.NDArray[Any], filling: float, size: int) -> npt.NDArray[Any]:
    """Return a copy with ``size`` more values of one kind at its end."""
    if not size:
        return values.copy()
    return np.concatenate([values, np.full(size, filling, values.dtype)])
