"""The RETRIEVAL_REQUEST record of every request (RFC §10, decision 19).

A record is a JSON head and the scores and exclusions as plain columns: ids as 16 bytes, scores as
8, reasons as one. That is about 15 KB for 600 candidates and a tenth of a millisecond to make; the
RFC's JSON object is built when somebody reads it. A record shares the next log commit, so no
request waits for it.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import numpy as np

from prme_ray.answer import excluded_of
from prme_ray.model.request import Request
from prme_ray.model.tables import floats, texts
from prme_ray.model.times import iso
from prme_ray.steps.values import Selection
from stages.known_rows import KnownRows, packed_ids
from stages.pack import Packed

__all__ = ["OP_TYPE", "decode_record", "encode_record"]

OP_TYPE = "RETRIEVAL_REQUEST"
_LENGTH = 4
_ID = 16
_SCORE = np.dtype("<f8")
_REASON = np.dtype("<u2")


def encode_record(
    request: Request,
    values: dict[str, Any],
    *,
    known: KnownRows,
    snapshot: int,
    encoder: str,
    reranker: str | None,
    fingerprint: str,
) -> bytes:
    """Return the record's bytes: length of the head, head, score columns, exclusion columns."""
    facts, rows = known.of(values["selection"].table)
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    generated = values["generated"]
    excluded = excluded_of(values)
    reasons = texts(excluded, "reason")
    numbers = {reason: number for number, reason in enumerate(dict.fromkeys(reasons))}
    head = {
        "request_id": request.request_id,
        "query": request.query,
        "alternate_queries": [alternate.query for alternate in values["alternates"]],
        "reference_time": iso(request.reference_time),
        "scope_filter": None if request.scopes is None else sorted(request.scopes),
        "retrieval_mode": request.mode,
        "query_intent": values["analysis"].intent,
        "snapshot": snapshot,
        "candidates_generated": dict(generated.counts),
        "candidates_after_filter": values["allowed"].table.num_rows,
        "objects_included_in_bundle": len(packed.included),
        "tokens_used": packed.tokens_used,
        "context_budget": request.packing.token_budget,
        "backend_failures": dict(values["failures"]),
        "min_score": request.min_score,
        "min_score_skipped": selection.min_score_skipped,
        "result_limit": request.limit,
        "embedding_model_version": encoder,
        "reranker": reranker,
        "settings_fingerprint": fingerprint,
        "selected": selection.table.num_rows,
        "reasons": list(numbers),
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"".join(
        (
            len(text).to_bytes(_LENGTH, "big"),
            text,
            facts.packed_ids[rows].tobytes(),
            floats(selection.table, "composite_score").astype(_SCORE, copy=False).tobytes(),
            packed_ids(texts(excluded, "node_id")),
            np.array([numbers[reason] for reason in reasons], _REASON).tobytes(),
        )
    )


def decode_record(payload: bytes) -> dict[str, Any]:
    """Return a record as the RFC's JSON object, with ``scores`` and ``excluded`` by id."""
    start = _LENGTH + int.from_bytes(payload[:_LENGTH], "big")
    record: dict[str, Any] = json.loads(payload[_LENGTH:start])
    selected, reasons = record.pop("selected"), record.pop("reasons")
    scores_at = start + selected * _ID
    excluded_at = scores_at + selected * _SCORE.itemsize
    left_out = (len(payload) - excluded_at) // (_ID + _REASON.itemsize)
    reasons_at = excluded_at + left_out * _ID
    scores = np.frombuffer(payload, _SCORE, selected, scores_at).tolist()
    numbers = np.frombuffer(payload, _REASON, left_out, reasons_at).tolist()
    record["scores"] = dict(zip(_names(payload[start:scores_at]), scores, strict=True))
    names = _names(payload[excluded_at:reasons_at])
    record["excluded"] = {name: reasons[number] for name, number in zip(names, numbers, strict=True)}
    return record


def _names(packed: bytes) -> list[str]:
    return [str(uuid.UUID(bytes=packed[at : at + _ID])) for at in range(0, len(packed), _ID)]
