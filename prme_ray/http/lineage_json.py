"""The lineage of every candidate's score as pieces of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prme_ray.http.pieces import Pieces, choices, ids, interleave, numbers, raw
from prme_ray.model.enums import Adjustment
from prme_ray.model.schemas import TRACE
from prme_ray.model.tables import column, field_numbers, field_of, ids_of, parts

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
_KINDS = raw([b'"%b",' % kind.encode() for kind in Adjustment])


class Lineages:
    """The lineages of a ``SCORED`` table that has at least one row.

    Attributes:
        floats: Their numbers, by field of ``LINEAGE``, to be made into JSON together with others.
        ranks: Their ranks, -1 for none, likewise.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._places, self._lineages = parts(column(table, "lineage"))
        self._formula = int(self._numbers("formula_version", 0)[0])  # one request has one formula
        fused = self._formula == _RANK_FUSION
        self.floats = {name: self._numbers(name, np.nan) for name in (*TRACE, *(_FACTORS if fused else ()))}
        self.ranks: dict[str, npt.NDArray[np.int64]] = {}
        if fused:
            ranks = {name: self._numbers(name, 0).astype(np.int64) for name in _RANKS}
            self.ranks = {name: np.where(values, values, -1) for name, values in ranks.items()}  # they count from 1

    def pieces(self, found: Mapping[str, Pieces]) -> list[Pieces]:
        """Return the pieces of every row, one after the other.

        Args:
            found: The pieces of ``floats`` and ``ranks``, those of ``CLOSING`` at the end of an object.
        """
        base, known = parts(field_of(self._lineages, "base_node_id"))
        names = ids_of(known)
        fusion: list[Pieces] = [b"null,"]
        if self.ranks:
            fusion = [b"{", *_fields(found, _RANKS), *_fields(found, _FACTORS), b","]
        return [
            b'{"formula_version":%d,"base_node_id":' % self._formula,
            ids([names[place] for place in base[self._places].tolist()]),
            b'"trace":{',
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
    values = lists.flatten()
    if not len(values):
        return b""
    get = values.field
    neural = get("neural_score")
    floats = {"coefficient": get("coefficient").to_numpy()}
    if neural.null_count < len(neural):
        floats["neural_score"] = neural.fill_null(np.nan).to_numpy()
    found = numbers(floats, closing=("neural_score",))
    steps = interleave(
        b'{"kind":',
        choices(_KINDS, get("kind").to_numpy()),
        b'"coefficient":',
        found["coefficient"],
        b'"source_node_id":',
        ids(get("source_node_id").to_pylist()),
        b'"neural_score":',
        found.get("neural_score", b"null}"),
    )
    # Lengths rather than offsets: those of a slice do not start at 0.
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(lists.value_lengths().to_numpy(), out=offsets[1:])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), steps), b",")
