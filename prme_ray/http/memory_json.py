"""The part of a candidate's JSON that its memory decides, whatever was asked."""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from orjson import dumps

from prme_ray.candidates import RESERVED
from prme_ray.http.pieces import Pieces, flags, numbers, strings
from prme_ray.model.enums import EpistemicType, LifecycleState, NodeType, Scope, SourceType, member
from prme_ray.model.times import NO_TIME

__all__ = ["MemoryPiece", "memory_pieces"]

_HEAD = b'{"node_id":%b,"content":%b,"score":'
_TAIL = (
    b',"node_type":%b,"lifecycle_state":%b,"epistemic_type":%b,"source_type":%b,"scope":%b,"confidence":%b,"salience":%b'
    b',"pinned":%b,"session_id":%b,"speaker":%b,"event_time":%b,"created_at":%b,"valid_from":%b,"valid_to":%b'
    b',"evidence_refs":%b,"metadata":%b,"paths":'
)


class MemoryPiece(NamedTuple):
    """One memory: its id, what stands before a candidate's score, and what stands after its relevance."""

    node_id: str
    head: bytes
    tail: bytes


def memory_pieces(memories: pa.StructArray) -> list[MemoryPiece]:
    """Return the pieces of each memory.

    Args:
        memories: Rows of the ``NODE`` schema, at least one.
    """
    get = memories.field
    ids: list[str] = get("node_id").to_pylist()
    heads = [
        _HEAD % (dumps(node_id), dumps(text)) for node_id, text in zip(ids, get("content").to_pylist(), strict=True)
    ]
    columns = (
        _members(get("node_type"), NodeType),
        _members(get("lifecycle_state"), LifecycleState),
        _members(get("epistemic_type"), EpistemicType),
        _members(get("source_type"), SourceType),
        _members(get("scope"), Scope),
        numbers(b"", get("confidence").to_numpy()),
        numbers(b"", get("salience").to_numpy()),
        flags(b"", get("pinned").to_pylist()),
        strings(b"", get("session_id").to_pylist()),
        strings(b"", get("speaker").to_pylist()),
        _times(get("event_time")),
        _times(get("created_at")),
        _times(get("valid_from")),
        _times(get("valid_to")),
        [dumps(refs.split(",")) if refs else b"[]" for refs in get("evidence").to_pylist()],
        [_public(text) for text in get("metadata").to_pylist()],
    )
    rows = zip(*(repeat(column) if isinstance(column, bytes) else column for column in columns), strict=False)
    return [MemoryPiece(node_id, head, _TAIL % row) for node_id, head, row in zip(ids, heads, rows, strict=True)]


def _members(codes: pa.Array, enum: type[StrEnum]) -> Pieces:
    return strings(b"", [member(enum, code) for code in codes.to_numpy().tolist()])


def _times(column: pa.Array) -> Pieces:
    if column.null_count == len(column):
        return b"null"
    instants = column.cast(pa.int64()).fill_null(NO_TIME).to_numpy().astype("datetime64[us]")
    # NumPy's "not a time" is the number that stands for none.
    return [
        b"null" if text == "NaT" else b'"%bZ"' % text.removesuffix(".000000").encode()
        for text in np.datetime_as_string(instants).tolist()
    ]


def _public(text: str | None) -> bytes:
    if text is None:
        return b"null"
    values: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key not in RESERVED}
    if not values:
        return b"null"
    try:
        return dumps(values)
    except TypeError:  # an integer of more than 64 bits, which orjson has no form for
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
