"""What several stages do with a table: look-ups, the order by score, relevance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prme_ray.model.tables import floats

__all__ = ["Rows", "by_score", "positions", "relevance"]

Rows = npt.NDArray[np.int64]
"""Row numbers."""

_BEST_FIRST = [("score", "descending"), ("node_id", "ascending")]


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
