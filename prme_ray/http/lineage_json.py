"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from prme_ray.http.pieces import numbers, strings
from prme_ray.model.enums import Adjustment, member
from prme_ray.model.tables import column

__all__ = ["lineage_pieces"]

# Column of LINEAGE -> name in the response, in the order of ``Trace`` and of ``RankFusion``.
_TRACE = {
    "trace_semantic": "semantic_similarity",
    "trace_lexical": "lexical_relevance",
    "trace_graph": "graph_proximity",
    "trace_recency": "recency_factor",
    "trace_salience": "salience",
    "trace_confidence": "confidence",
    "trace_epistemic": "epistemic_weight",
    "trace_path": "path_score",
    "trace_temporal": "temporal_affinity",
    "trace_node_type": "node_type_boost",
    "base_score": "composite_score",
}
_RANKS = ("semantic_rank", "lexical_rank")
_FUSION = {
    "epistemic_factor": "epistemic_factor",
    "node_type_factor": "node_type_factor",
    "temporal_factor": "temporal_factor",
    "recency_factor": "recency_boost_factor",
    "tie_break": "tie_break",
}
_RANK_FUSION = 2


def _object(names: list[str]) -> bytes:
    return b"{" + b",".join(b'"%b":%%b' % name.encode() for name in names) + b"}"


_LINEAGE = b'{"formula_version":%b,"base_node_id":%b,"trace":' + _object([*_TRACE.values()]) + b',"rank_fusion":'
_RANK_PARTS = _object([*_RANKS, *_FUSION.values()])
_STEP = _object(["kind", "coefficient", "source_node_id", "neural_score"])


def lineage_pieces(table: pa.Table) -> tuple[list[bytes], bytes, list[bytes], bytes]:
    """Return the pieces of a ``SCORED`` table's lineages, one after the other in every row."""
    reference = column(table, "lineage")
    rows = reference.indices.to_numpy()
    used, places = np.unique(rows, return_inverse=True)
    encoded = _base(reference.dictionary.take(pa.array(used)))
    return [encoded[place] for place in places.tolist()], b',"adjustments":', _steps(table), b"}"


def _base(lineages: pa.StructArray) -> list[bytes]:
    get = lineages.field
    versions = get("formula_version").to_numpy()
    parts = zip(
        numbers(versions.astype(np.int64)),
        strings(get("base_node_id").to_pylist()),
        *(numbers(get(name).to_numpy(zero_copy_only=False)) for name in _TRACE),
        strict=True,
    )
    pieces = [_LINEAGE % part for part in parts]
    fused = versions == _RANK_FUSION
    if not fused.any():
        return [piece + b"null" for piece in pieces]
    ranks = zip(
        *(numbers(get(name).to_pylist()) for name in _RANKS),
        *(numbers(get(name).to_numpy(zero_copy_only=False)) for name in _FUSION),
        strict=True,
    )
    return [
        piece + (_RANK_PARTS % rank if is_fused else b"null")
        for piece, rank, is_fused in zip(pieces, ranks, fused.tolist(), strict=True)
    ]


def _steps(table: pa.Table) -> list[bytes]:
    lists = column(table, "adjustments")
    pieces = [b"[]"] * len(lists)
    values = lists.flatten()
    if not len(values):
        return pieces
    get = values.field
    steps = [
        _STEP % step
        for step in zip(
            strings([str(member(Adjustment, code)) for code in get("kind").to_pylist()]),
            numbers(get("coefficient").to_numpy()),
            strings(get("source_node_id").to_pylist()),
            numbers(get("neural_score").to_numpy(zero_copy_only=False)),
            strict=True,
        )
    ]
    # Lengths rather than offsets: those of a slice do not start at 0.
    ends = np.cumsum(lists.value_lengths().to_numpy()).tolist()
    start = 0
    for position, end in enumerate(ends):
        if end > start:
            pieces[position] = b"[" + b",".join(steps[start:end]) + b"]"
            start = end
    return pieces
