"""What scoring returns: the candidates in rank order with the lineage of their scores (digest a §1.4, §6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import Adjustment, code
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.ordering import ordered_by_place
from prme_ray.model.tables import (
    ADJUSTMENT,
    LINEAGE,
    SCORED,
    SIGNALS,
    built,
    column,
    field_of,
    floats,
    id_ranks,
    ids_at,
    ints,
    keep_fields,
    parts,
    picked,
    refer,
    referring,
    shorts,
)
from stages.columns import constant, same_number
from stages.current_update import Boost
from stages.numeric import Floats

__all__ = ["Scored", "channel_scores", "path_scores", "ranked"]

_STEPS = SCORED.field("adjustments").type
_NO_STEPS = pa.array([], ADJUSTMENT)
_FULL_PATHS = 3.0
_FLOAT = pa.float64()
_RANK = pa.int32()
_LINEAGE_FIELDS = list(LINEAGE)
_LINEAGE = [(field.name, field.type) for field in LINEAGE]
_EMPTY_AT_FIRST = [(field.name, field.type) for field in SCORED if field.nullable]


@dataclass(frozen=True, slots=True)
class Scored:
    """Outcome of stage 5.

    Attributes:
        table: SCORED table, best first.
        current_state: The question was scored as one about the present state.
        applied: The six additive weights and ``recency_lambda`` after every shift.
    """

    table: pa.Table
    current_state: bool
    applied: dict[str, float]


def channel_scores(candidates: pa.Table) -> tuple[Floats, Floats]:
    """Return cosine and normalised BM25, a value a row.

    Raises:
        InvalidRequest: NaN or infinity in a channel score, which no order can be made from.
    """
    semantic, lexical = floats(candidates, "semantic_score"), floats(candidates, "lexical_score")
    for name, values in (("semantic_score", semantic), ("lexical_score", lexical)):
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InvalidRequest(
                argument=f"{name} of {column(candidates, 'node_id')[row]}",
                given=float(values[row]),
                allowed="finite channel scores: check the encoder and the merged channel results",
            )
    return semantic, lexical


def path_scores(candidates: pa.Table) -> Floats:
    """Return path_count / 3, at most 1: it only breaks ties."""
    return np.minimum(ints(candidates, "path_count") / _FULL_PATHS, 1.0)


def ranked(
    candidates: pa.Table,
    *,
    formula: int,
    base: Floats,
    boost: Boost,
    path_score: Floats,
    columns: Mapping[str, Any],
) -> pa.Table:
    """Return the SCORED table, sorted by (-composite, -path score, id).

    Args:
        candidates: CANDIDATE table, in any order.
        formula: 1 weighted, 2 rank fusion.
        base: Base scores, recorded in the lineage.
        boost: The current-update step on top of them.
        path_score: See :func:`path_scores`.
        columns: Further ``LINEAGE`` columns: NumPy arrays in the order of ``candidates`` (ranks from 1, 0 for
            none), or one number for every row. A nullable column that is missing is null.
    """
    rows = candidates.num_rows
    nodes = column(candidates, "node")
    own, memories = parts(nodes)
    ids = referring(own, field_of(memories, "node_id"))
    place = ordered_by_place([-boost.scores, -path_score], places=id_ranks(memories)[own])
    origin = {"formula_version": formula, "base_node_id": ids, "base_score": base, "trace_path": path_score, **columns}
    fields = {name: _field(origin.get(name), kind, rows) for name, kind in _LINEAGE}
    lineages = pa.StructArray.from_arrays([array for array, _, _ in fields.values()], fields=_LINEAGE_FIELDS)
    numbers = {(name, null): values for name, (_, values, null) in fields.items() if values is not None}
    keep_fields(lineages, {"base_node_id": ids}, numbers)
    # Lineages stay in the candidates' order; sorting only turns the references to them.
    lineage = refer(lineages, place)
    values = {
        "node": picked(nodes, place),
        "paths": shorts(candidates, "paths")[place],
        "path_count": shorts(candidates, "path_count")[place],
        **{name: floats(candidates, name)[place] for name in SIGNALS},
        "composite_score": boost.scores[place],
        "context_relevance": constant(0.0, _FLOAT, rows),
        "has_own_trace": constant(True, pa.bool_(), rows),
        "lineage": lineage,
        "adjustments": _steps(nodes, boost=boost, place=place),
        **{name: constant(None, kind, rows) for name, kind in _EMPTY_AT_FIRST},
    }
    return built(SCORED, values)


def _field(value: Any, kind: Any, rows: int) -> tuple[pa.Array, npt.NDArray[Any] | None, float | None]:
    """Return a field of lineages as Arrow, as NumPy, and what stands for null there (``None``: it has no null)."""
    if isinstance(value, pa.Array):
        return value, None, None
    ranks = kind == _RANK
    if isinstance(value, np.ndarray):
        return (pa.array(value, mask=value == 0), value, 0) if ranks else (pa.array(value), value, None)
    null = None if value is not None else 0 if ranks else np.nan
    return constant(value, kind, rows), same_number(null if value is None else value, kind, rows), null


def _steps(nodes: pa.DictionaryArray, *, boost: Boost, place: npt.NDArray[Any]) -> pa.Array:
    """Return the ``adjustments`` column in rank order: a current-update step on the boosted rows."""
    if not len(boost.rows):
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(place) + 1, np.int32)), _NO_STEPS, type=_STEPS)
    own, memories = parts(nodes)
    coefficient = np.zeros(len(place))
    coefficient[boost.rows] = boost.coefficients
    coefficient = coefficient[place]
    raised = coefficient > 0.0
    count = int(raised.sum())
    steps = pa.StructArray.from_arrays(
        [
            pa.array(np.full(count, code(Adjustment.CURRENT_UPDATE), np.int8)),
            pa.array(coefficient[raised]),
            pa.array(ids_at(memories, own[place[raised]]), pa.string()),
            pa.nulls(count, pa.float64()),
        ],
        fields=list(ADJUSTMENT),
    )
    offsets = np.concatenate(([0], np.cumsum(raised))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), steps, type=_STEPS)
