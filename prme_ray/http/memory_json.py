"""The part of a candidate's JSON that its memory decides, whatever was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from orjson import Fragment, dumps

from prme_ray.candidates import RESERVED
from prme_ray.model.enums import EpistemicType, LifecycleState, NodeType, Scope, SourceType, member
from prme_ray.model.times import NO_TIME

__all__ = ["memory_pieces"]


def memory_pieces(memories: pa.StructArray) -> Iterator[bytes]:
    """Yield for each memory what stands before a candidate's score.

    Args:
        memories: Rows of the ``NODE`` schema, at least one.
    """
    get = memories.field
    columns: dict[str, list[Any]] = {
        "node_id": get("node_id").to_pylist(),
        "content": get("content").to_pylist(),
        "node_type": _members(get("node_type"), NodeType),
        "lifecycle_state": _members(get("lifecycle_state"), LifecycleState),
        "epistemic_type": _members(get("epistemic_type"), EpistemicType),
        "source_type": _members(get("source_type"), SourceType),
        "scope": _members(get("scope"), Scope),
        **{name: get(name).to_pylist() for name in ("confidence", "salience", "pinned", "session_id", "speaker")},
        **{name: _times(get(name)) for name in ("event_time", "created_at", "valid_from", "valid_to")},
        "evidence_refs": [refs.split(",") if refs else [] for refs in get("evidence").to_pylist()],
        "metadata": [_public(text) for text in get("metadata").to_pylist()],
    }
    for row in zip(*columns.values(), strict=True):
        yield dumps(dict(zip(columns, row, strict=True)))[:-1] + b',"score":'


def _members(codes: pa.Array, enum: type[StrEnum]) -> list[StrEnum]:
    return [member(enum, code) for code in codes.to_numpy().tolist()]


def _times(column: pa.Array) -> list[str | None]:
    instants = column.cast(pa.int64()).fill_null(NO_TIME).to_numpy().astype("datetime64[us]")
    # NumPy's "not a time" is the number that stands for none.
    return [
        None if text == "NaT" else f"{text.removesuffix('.000000')}Z"
        for text in np.datetime_as_string(instants).tolist()
    ]


def _public(text: str | None) -> Any:
    if text is None:
        return None
    values: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key not in RESERVED}
    if not values:
        return None
    try:
        return Fragment(dumps(values))
    except TypeError:  # an integer of more than 64 bits, which orjson has no form for
        return Fragment(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode())
