"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from prme_ray.http.pieces import Pieces, counts, grouped, ids, joined, numbers, strings
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
_FACTORS = {
    "epistemic_factor": "epistemic_factor",
    "node_type_factor": "node_type_factor",
    "temporal_factor": "temporal_factor",
    "recency_factor": "recency_boost_factor",
    "tie_break": "tie_break",
}
_RANK_FUSION = 2


def lineage_pieces(table: pa.Table) -> list[Pieces]:
    """Return the pieces of a ``SCORED`` table's lineages, one after the other in every row."""
    reference = column(table, "lineage")
    rows = reference.indices.to_numpy()
    fields = reference.dictionary.flatten()
    columns = {field.name: values for field, values in zip(reference.dictionary.type, fields, strict=True)}

    def floats(names: dict[str, str]) -> Iterator[Pieces]:
        for place, (name, shown) in enumerate(names.items(), start=1):
            yield b'"%b":' % shown.encode()
            values = columns[name].to_numpy(zero_copy_only=False)[rows]
            yield numbers(values, b"}" if place == len(names) else b",")

    versions = columns["formula_version"].to_numpy()[rows].astype(np.int64)
    base = columns["base_node_id"]
    names = base.dictionary.take(pa.array(base.indices.to_numpy()[rows])).to_pylist()
    pieces = [
        b'{"formula_version":',
        numbers(versions),
        b'"base_node_id":',
        ids(names),
        b'"trace":{',
        *floats(_TRACE),
        b',"rank_fusion":',
    ]
    # One request has one formula.
    if versions[0] == _RANK_FUSION:
        pieces.append(b"{")
        for name in _RANKS:
            pieces += [b'"%b":' % name.encode(), counts(columns[name].fill_null(-1).to_numpy()[rows].astype(np.int64))]
        pieces += floats(_FACTORS)
    else:
        pieces.append(b"null")
    return [*pieces, b',"adjustments":', *_steps(column(table, "adjustments")), b"},"]


def _steps(lists: pa.Array) -> list[Pieces]:
    values = lists.flatten()
    if not len(values):
        return [b"[]"]
    get = values.field
    steps = joined(
        b'{"kind":',
        strings([member(Adjustment, code) for code in get("kind").to_numpy().tolist()]),
        b'"coefficient":',
        numbers(get("coefficient").to_numpy()),
        b'"source_node_id":',
        ids(get("source_node_id").to_pylist()),
        b'"neural_score":',
        numbers(get("neural_score").to_numpy(zero_copy_only=False), b"}"),
        b",",
        rows=len(values),
    )
    # Lengths rather than offsets: those of a slice do not start at 0.
    return grouped(steps, lists.value_lengths().to_numpy())
