"""What scoring returns: the candidates in rank order with the lineage of their scores (digest a §1.4, §6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import Adjustment, code
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.ordering import ordered
from prme_ray.model.tables import ADJUSTMENT, CANDIDATE, LINEAGE, SCORED, column, floats, ints, picked, refer
from stages.current_update import Boost
from stages.numeric import Floats

__all__ = ["Scored", "channel_scores", "path_scores", "ranked"]

_STEPS = SCORED.field("adjustments").type
_NO_STEPS = pa.array([], ADJUSTMENT)
_FULL_PATHS = 3.0


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
        columns: Further ``LINEAGE`` columns: NumPy or Arrow arrays in the order of ``candidates``, or
            one number for every row. A nullable column that is missing is null.
    """
    rows = candidates.num_rows
    ids = column(candidates, "node_id")
    place = ordered([-boost.scores, -path_score], ids_at=lambda rows: ids.take(pa.array(rows)).to_pylist())
    origin = {"formula_version": formula, "base_node_id": ids, "base_score": base, "trace_path": path_score, **columns}
    lineages = [_filled(origin.get(field.name), field.type, rows) for field in LINEAGE]
    # Lineages stay in the candidates' order; sorting only turns the references to them.
    lineage = refer(pa.StructArray.from_arrays(lineages, fields=list(LINEAGE)), place)
    arrays = [picked(column(candidates, "node"), place)]
    arrays += [pa.array(column(candidates, field.name).to_numpy()[place]) for field in list(CANDIDATE)[1:]]
    values = {
        "composite_score": boost.scores[place],
        "context_relevance": 0.0,
        "has_own_trace": True,
        "lineage": lineage,
        "adjustments": _steps(ids, boost=boost, place=place),
    }
    rest = list(SCORED)[len(CANDIDATE) :]
    arrays += [_filled(values.get(field.name), field.type, rows) for field in rest]
    return pa.Table.from_arrays(arrays, schema=SCORED)


def _filled(value: Any, kind: Any, rows: int) -> pa.Array:
    if isinstance(value, np.ndarray):
        return pa.array(value, kind)
    return value if isinstance(value, pa.Array) else _constant(value, kind, rows)


@lru_cache(maxsize=512)
def _constant(value: float | None, kind: Any, rows: int) -> pa.Array:
    """Return ``rows`` times one value; arrays never change, so equal ones are shared."""
    return pa.nulls(rows, kind) if value is None else pa.array(np.full(rows, value, kind.to_pandas_dtype()))


def _steps(ids: Any, *, boost: Boost, place: npt.NDArray[Any]) -> pa.Array:
    """Return the ``adjustments`` column in rank order: a current-update step on the boosted rows."""
    if not len(boost.rows):
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(place) + 1, np.int32)), _NO_STEPS, type=_STEPS)
    coefficient = np.zeros(len(place))
    coefficient[boost.rows] = boost.coefficients
    coefficient = coefficient[place]
    raised = coefficient > 0.0
    count = int(raised.sum())
    steps = pa.StructArray.from_arrays(
        [
            pa.array(np.full(count, code(Adjustment.CURRENT_UPDATE), np.int8)),
            pa.array(coefficient[raised]),
            ids.take(pa.array(place[raised])),
            pa.nulls(count, pa.float64()),
        ],
        fields=list(ADJUSTMENT),
    )
    offsets = np.concatenate(([0], np.cumsum(raised))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), steps, type=_STEPS)
