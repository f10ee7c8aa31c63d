"""What several stages do with a table: flat columns, row batches, the order by score, relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prme_ray.model.tables import floats

__all__ = ["Rows", "batch", "by_score", "flat", "positions", "relevance"]

Rows = npt.NDArray[np.int64]
"""Row numbers."""

_BEST_FIRST = [("score", "descending"), ("node_id", "ascending")]


def flat(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array, without a copy where it already is one."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def batch(table: pa.Table, names: Sequence[str]) -> pa.RecordBatch:
    """Return some columns as one record batch.

    A take on one batch costs half of a take on each column, and stages take whole rows.
    """
    batches = table.select(names).to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays([flat(table, name) for name in names], names=list(names))


def positions(values: pa.Array, among: pa.Array) -> Rows:
    """Return where each value stands in ``among`` (its first place), -1 for nowhere."""
    found = pc.index_in(values, value_set=among)
    if found.null_count:
        found = found.fill_null(-1)
    return found.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def by_score(scores: Any, node_ids: pa.Array) -> Rows:
    """Return the rows best first: highest score, then smallest id (digest section 6.4)."""
    keys = pa.RecordBatch.from_arrays([pa.array(scores, pa.float64()), node_ids], names=["score", "node_id"])
    order = pc.sort_indices(keys, sort_keys=_BEST_FIRST)
    return order.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def relevance(scored: pa.Table) -> npt.NDArray[np.float64]:
    """Return each row's semantic relevance, shape (n,).

    It is the largest of 0, the memory's own cosine, the cosine of the memory its score came from, and
    the relevance of the memories that brought it in as context.
    """
    found = np.maximum(floats(scored, "semantic_score"), floats(scored, "trace_semantic"))
    return np.maximum(np.maximum(found, floats(scored, "context_relevance")), 0.0)
