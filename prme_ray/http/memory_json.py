"""The part of a candidate's JSON that its memory decides, whatever was asked."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa

from prme_ray.candidates import RESERVED
from prme_ray.http.pieces import BOOLEANS, numbers, strings
from prme_ray.model.enums import EpistemicType, LifecycleState, NodeType, Scope, SourceType, member

__all__ = ["memory_pieces"]

_TAIL = (
    b',"node_type":%b,"lifecycle_state":%b,"epistemic_type":%b,"source_type":%b,"scope":%b,"confidence":%b,"salience":%b'
    b',"pinned":%b,"session_id":%b,"speaker":%b,"event_time":%b,"created_at":%b,"valid_from":%b,"valid_to":%b'
    b',"evidence_refs":%b,"metadata":%b,"paths":'
)


def memory_pieces(memories: pa.StructArray) -> list[tuple[bytes, bytes]]:
    """Return what stands before a candidate's score and what stands after its relevance.

    Args:
        memories: Rows of the ``NODE`` schema.
    """
    get = memories.field
    ids, contents = get("node_id").to_pylist(), get("content").to_pylist()
    heads = [
        b'{"node_id":%b,"content":%b,"score":' % (orjson.dumps(node_id), orjson.dumps(content))
        for node_id, content in zip(ids, contents, strict=True)
    ]
    tails = zip(
        _members(get("node_type"), NodeType),
        _members(get("lifecycle_state"), LifecycleState),
        _members(get("epistemic_type"), EpistemicType),
        _members(get("source_type"), SourceType),
        _members(get("scope"), Scope),
        numbers(get("confidence").to_numpy()),
        numbers(get("salience").to_numpy()),
        [BOOLEANS[value] for value in get("pinned").to_pylist()],
        strings(get("session_id").to_pylist()),
        strings(get("speaker").to_pylist()),
        _times(get("event_time")),
        _times(get("created_at")),
        _times(get("valid_from")),
        _times(get("valid_to")),
        [orjson.dumps(refs.split(",")) if refs else b"[]" for refs in get("evidence").to_pylist()],
        [b"null" if text is None else _public(text) for text in get("metadata").to_pylist()],
        strict=True,
    )
    return [(head, _TAIL % tail) for head, tail in zip(heads, tails, strict=True)]


def _members(codes: pa.Array, enum: type[StrEnum]) -> list[bytes]:
    return strings([str(member(enum, code)) for code in codes.to_pylist()])


def _times(column: pa.Array) -> list[bytes]:
    return [
        b"null" if value is None else b'"%b"' % value.isoformat().replace("+00:00", "Z").encode()
        for value in column.to_pylist()
    ]


def _public(text: str) -> bytes:
    values: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key not in RESERVED}
    if not values:
        return b"null"
    try:
        return orjson.dumps(values)
    except TypeError:  # an integer of more than 64 bits, which orjson has no form for
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
