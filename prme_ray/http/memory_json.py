"""The part of a candidate's JSON that its memory decides, whatever was asked."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from orjson import dumps

from prme_ray.candidates import RESERVED
from prme_ray.http.pieces import Pieces, flags, ids, joined, numbers, strings
from prme_ray.model.enums import EpistemicType, LifecycleState, NodeType, Scope, SourceType, member
from prme_ray.model.times import NO_TIME

__all__ = ["MemoryPiece", "memory_pieces"]


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
    rows = len(memories)
    names: list[str] = get("node_id").to_pylist()
    heads = joined(
        b'{"node_id":',
        ids(names),
        b'"content":',
        [dumps(text) for text in get("content").to_pylist()],
        b',"score":',
        rows=rows,
    )
    tails = joined(
        b'"node_type":',
        _members(get("node_type"), NodeType),
        b'"lifecycle_state":',
        _members(get("lifecycle_state"), LifecycleState),
        b'"epistemic_type":',
        _members(get("epistemic_type"), EpistemicType),
        b'"source_type":',
        _members(get("source_type"), SourceType),
        b'"scope":',
        _members(get("scope"), Scope),
        b'"confidence":',
        numbers(get("confidence").to_numpy()),
        b'"salience":',
        numbers(get("salience").to_numpy()),
        b'"pinned":',
        flags(get("pinned").to_numpy(zero_copy_only=False)),
        b'"session_id":',
        strings(get("session_id").to_pylist()),
        b'"speaker":',
        strings(get("speaker").to_pylist()),
        b'"event_time":',
        _times(get("event_time")),
        b'"created_at":',
        _times(get("created_at")),
        b'"valid_from":',
        _times(get("valid_from")),
        b'"valid_to":',
        _times(get("valid_to")),
        b'"evidence_refs":',
        [dumps(refs.split(",")) if refs else b"[]" for refs in get("evidence").to_pylist()],
        b',"metadata":',
        [_public(text) for text in get("metadata").to_pylist()],
        b',"paths":',
        rows=rows,
    )
    return [MemoryPiece(*pieces) for pieces in zip(names, heads.to_pylist(), tails.to_pylist(), strict=True)]


def _members(codes: pa.Array, enum: type[StrEnum]) -> Pieces:
    return strings([member(enum, code) for code in codes.to_numpy().tolist()])


def _times(column: pa.Array) -> Pieces:
    if column.null_count == len(column):
        return b"null,"
    instants = column.cast(pa.int64()).fill_null(NO_TIME).to_numpy().astype("datetime64[us]")
    # NumPy's "not a time" is the number that stands for none.
    return [
        b"null," if text == "NaT" else b'"%bZ",' % text.removesuffix(".000000").encode()
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
