"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from prme_ray.http.pieces import numbers, strings
from prme_ray.model.enums import Adjustment, member
from prme_ray.model.tables import column, floats, ints, texts

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
_FACTORS = {
    "epistemic_factor": "epistemic_factor",
    "node_type_factor": "node_type_factor",
    "temporal_factor": "temporal_factor",
    "recency_factor": "recency_boost_factor",
    "tie_break": "tie_break",
}
_RANK_FUSION = 2
_STEP = b'{"kind":%b,"coefficient":%b,"source_node_id":%b,"neural_score":%b}'

_Pieces = list[bytes | list[bytes]]


def lineage_pieces(table: pa.Table) -> _Pieces:
    """Return the pieces of a ``SCORED`` table's lineages, one after the other in every row."""
    pieces: _Pieces = [b'{"formula_version":', numbers(ints(table, "formula_version"))]
    pieces += [b',"base_node_id":', strings(texts(table, "base_node_id")), b',"trace":{']
    for place, (name, shown) in enumerate(_TRACE.items()):
        pieces += [_key(shown, place), numbers(floats(table, name))]
    return [*pieces, b'},"rank_fusion":', *_fusion(table), b',"adjustments":', _steps(table), b"}"]


def _key(name: str, place: int) -> bytes:
    return b'%b"%b":' % (b"," if place else b"", name.encode())


def _fusion(table: pa.Table) -> _Pieces:
    # One request has one formula.
    if ints(table, "formula_version")[0] != _RANK_FUSION:
        return [b"null"]
    pieces: _Pieces = [b"{"]
    for place, name in enumerate(_RANKS):
        pieces += [_key(name, place), numbers(column(table, name).to_pylist())]
    for name, shown in _FACTORS.items():
        pieces += [_key(shown, 1), numbers(floats(table, name))]
    return [*pieces, b"}"]


def _steps(table: pa.Table) -> bytes | list[bytes]:
    lists = column(table, "adjustments")
    values = lists.flatten()
    if not len(values):
        return b"[]"
    get = values.field
    steps = [
        _STEP % step
        for step in zip(
            _each(strings([str(member(Adjustment, code)) for code in get("kind").to_pylist()]), len(values)),
            _each(numbers(get("coefficient").to_numpy()), len(values)),
            _each(strings(get("source_node_id").to_pylist()), len(values)),
            _each(numbers(get("neural_score").to_numpy(zero_copy_only=False)), len(values)),
            strict=True,
        )
    ]
    pieces = [b"[]"] * len(lists)
    # Lengths rather than offsets: those of a slice do not start at 0.
    ends = np.cumsum(lists.value_lengths().to_numpy()).tolist()
    start = 0
    for position, end in enumerate(ends):
        if end > start:
            pieces[position] = b"[" + b",".join(steps[start:end]) + b"]"
            start = end
    return pieces


def _each(pieces: bytes | list[bytes], count: int) -> list[bytes]:
    return [pieces] * count if isinstance(pieces, bytes) else pieces
