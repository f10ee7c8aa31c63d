"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from prme_ray.http.pieces import Pieces, choices, counts, letters, raw
from prme_ray.model.enums import Adjustment
from prme_ray.model.schemas import TRACE
from prme_ray.model.tables import column, field_numbers, field_of, parts

__all__ = ["CLOSING", "Lineages"]

_RANKS = {"semantic_rank": "semantic_rank", "lexical_rank": "lexical_rank"}
_FACTORS = {
    "epistemic_factor": "epistemic_factor",
    "node_type_factor": "node_type_factor",
    "temporal_factor": "temporal_factor",
    "recency_factor": "recency_boost_factor",
    "tie_break": "tie_break",
}
CLOSING = ("base_score", "tie_break")
"""Fields that stand last in their objects."""
_RANK_FUSION = 2
_NO_RANK = b"null,"  # they count from 1
_KINDS = list(Adjustment)


class Lineages:
    """The lineages of a ``SCORED`` table that has at least one row.

    Attributes:
        floats: Their numbers, by field of ``LINEAGE``, to be made into JSON together with others.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._places, self._lineages = parts(column(table, "lineage"))
        self._formula = int(self._numbers("formula_version", 0)[0])  # one request has one formula
        fused = self._formula == _RANK_FUSION
        self.floats = {name: self._numbers(name, np.nan) for name in (*TRACE, *(_FACTORS if fused else ()))}

    def pieces(self, found: Mapping[str, Pieces]) -> list[Pieces]:
        """Return the pieces of every row, one after the other.

        Args:
            found: The pieces of ``floats``, those of ``CLOSING`` at the end of an object.
        """
        base, known = parts(field_of(self._lineages, "base_node_id"))
        fusion: list[Pieces] = [b"null,"]
        if self._formula == _RANK_FUSION:
            ranks = {name: counts(self._numbers(name, 0).astype(np.int32), _NO_RANK) for name in _RANKS}
            fusion = [b"{", *_fields(ranks, _RANKS), *_fields(found, _FACTORS), b","]
        return [
            b'{"formula_version":%d,"base_node_id":"' % self._formula,
            letters(known.take(pa.array(base[self._places]))),
            b'","trace":{',
            *_fields(found, TRACE),
            b',"rank_fusion":',
            *fusion,
            b'"adjustments":[',
            _steps(column(self._table, "adjustments")),
            b"]},",
        ]

    def _numbers(self, name: str, null: float) -> npt.NDArray[Any]:
        values = field_numbers(self._lineages, name, null)
        return values[self._places] if values.strides[0] else values  # what all lineages share need not be picked


def _fields(values: Mapping[str, Pieces], shown: Mapping[str, str]) -> Iterator[Pieces]:
    for field, name in shown.items():
        yield b'"%b":' % name.encode()
        yield values[field]


def _steps(lists: pa.Array) -> Pieces:
    """Return the steps of every row; few rows have any."""
    lengths = lists.value_lengths().to_numpy()
    rows = np.flatnonzero(lengths)
    if not len(rows):
        return b""
    get = lists.flatten().field
    steps = [
        {"kind": _KINDS[kind], "coefficient": coefficient, "source_node_id": source, "neural_score": neural}
        for kind, coefficient, source, neural in zip(
            get("kind").to_numpy().tolist(),
            get("coefficient").to_numpy().tolist(),
            get("source_node_id").to_pylist(),
            get("neural_score").to_pylist(),
            strict=True,
        )
    ]
    ends = np.cumsum(lengths[rows]).tolist()
    text = orjson.dumps([steps[start:end] for start, end in pairwise([0, *ends])])
    # No bracket stands in an id or a number, so brackets are where one row ends and the next begins.
    places = np.zeros(len(lists), np.int32)
    places[rows] = np.arange(1, len(rows) + 1)
    return choices(raw([b"", *text[len("[[") : -len("]]")].split(b"],[")]), places)
