"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pyarrow as pa

from prme_ray.http.pieces import Pieces, counts, ids, numbers, strings
from prme_ray.model.enums import Adjustment, member
from prme_ray.model.schemas import TRACE
from prme_ray.model.tables import column

__all__ = ["lineage_pieces"]

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


def lineage_pieces(table: pa.Table) -> list[Pieces]:
    """Return the pieces of a ``SCORED`` table's lineages, one after the other in every row."""
    reference = column(table, "lineage")
    rows = reference.indices.to_numpy()
    fields = reference.dictionary.flatten()
    columns = {field.name: values for field, values in zip(reference.dictionary.type, fields, strict=True)}

    def floats(name: str, shown: str, before: bytes = b",") -> Pieces:
        return numbers(b'%b"%b":' % (before, shown.encode()), columns[name].to_numpy(zero_copy_only=False)[rows])

    versions = columns["formula_version"].to_numpy()[rows].astype(np.int64)
    base = columns["base_node_id"]
    known = base.dictionary.to_pylist()
    names = [known[row] for row in base.indices.to_numpy()[rows].tolist()]
    pieces = [
        numbers(b'{"formula_version":', versions),
        ids(b',"base_node_id":', names),
        b',"trace":{',
        *(floats(name, shown, b"," if place else b"") for place, (name, shown) in enumerate(TRACE.items())),
        b'},"rank_fusion":',
    ]
    # One request has one formula.
    if versions[0] == _RANK_FUSION:
        for place, name in enumerate(_RANKS):
            key = b'%b"%b":' % (b"," if place else b"{", name.encode())
            ranks = np.nan_to_num(columns[name].to_numpy(zero_copy_only=False), nan=-1)  # Arrow's nulls come as NaN
            pieces.append(counts(key, ranks[rows].astype(np.int64)))
        pieces += [floats(name, shown) for name, shown in _FACTORS.items()]
        pieces.append(b"}")
    else:
        pieces.append(b"null")
    return [*pieces, b',"adjustments":', _steps(column(table, "adjustments")), b"}"]


def _steps(lists: pa.Array) -> Pieces:
    values = lists.flatten()
    if not len(values):
        return b"[]"
    get = values.field
    steps = [
        _STEP % step
        for step in zip(
            *(
                repeat(pieces) if isinstance(pieces, bytes) else pieces
                for pieces in (
                    strings(b"", [member(Adjustment, code) for code in get("kind").to_numpy().tolist()]),
                    numbers(b"", get("coefficient").to_numpy()),
                    ids(b"", get("source_node_id").to_pylist()),
                    numbers(b"", get("neural_score").to_numpy(zero_copy_only=False)),
                )
            ),
            strict=False,
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
