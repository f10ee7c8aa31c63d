"""The RETRIEVAL_REQUEST record of every request (RFC §10, digest a §7.7, decision 19).

A record is a JSON head and the scores and exclusions as plain columns: ids as 16 bytes, scores as
8, reasons as one. That is about 15 KB for 600 candidates and a tenth of a millisecond to make; the
RFC's JSON object is built when somebody reads it. A record shares the next log commit, so no
request waits for it.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from prme_ray.answer import aggregation_coverage, excluded_of, historical_coverage
from prme_ray.model.analysis import QueryAnalysis
from prme_ray.model.enums import Scope
from prme_ray.model.errors import PrmeRayError
from prme_ray.model.request import Request
from prme_ray.model.tables import floats, texts
from prme_ray.model.times import iso
from prme_ray.steps.values import Selection
from stages.known_rows import KnownRows, packed_ids
from stages.pack import Packed

__all__ = ["OP_TYPE", "Setup", "decode_record", "encode_failure", "encode_record"]

OP_TYPE = "RETRIEVAL_REQUEST"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LENGTH = 4
_ID = 16
_SCORE = np.dtype("<f8")
_REASON = np.dtype("<u2")
_BOUNDS = ("time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to")
_BY_SELECTION = frozenset({"below_threshold", "source_limit", "evidence_limit", "result_limit"})


@dataclass(frozen=True, slots=True)
class Setup:
    """What answers a request.

    Attributes:
        snapshot: The owner's number that was read; 0 where a request ended before.
        encoder: Identity of the encoder.
        reranker: Identity of the cross-encoder, where one is on.
        fingerprint: That of the settings.
        scoring_version: That of the scoring settings in force.
        embedding_mismatch: Whether stored vectors come from another encoder.
    """

    snapshot: int
    encoder: str
    reranker: str | None
    fingerprint: str
    scoring_version: str
    embedding_mismatch: bool


def encode_record(request: Request, values: dict[str, Any], *, known: KnownRows, setup: Setup) -> bytes:
    """Return the record's bytes: length of the head, head, score columns, exclusion columns.

    Args:
        request: The request.
        values: The values of the executed flow.
        known: Facts about memories.
        setup: What answered.
    """
    facts, rows = known.of(values["selection"].table)
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    analysis: QueryAnalysis = values["analysis"]
    excluded = excluded_of(values)
    reasons = texts(excluded, "reason")
    numbers = {reason: number for number, reason in enumerate(dict.fromkeys(reasons))}
    coverage = aggregation_coverage(request, values, Counter(reasons))
    history = historical_coverage(request)
    head = _asked(request, setup) | {
        "error": None,
        "alternate_queries": [alternate.query for alternate in values["alternates"]],
        "query_intent": analysis.intent,
        "query_time_from": _time(analysis.time_from),
        "query_time_to": _time(analysis.time_to),
        "candidates_generated": dict(values["generated"].counts),
        "candidates_after_filter": values["allowed"].table.num_rows,
        "candidates_filtered": len(reasons),
        "objects_included_in_bundle": len(packed.included),
        "tokens_used": packed.tokens_used,
        "backend_failures": dict(values["failures"]),
        "min_score_skipped": selection.min_score_skipped,
        "cross_scope_hint_count": selection.hints.num_rows,
        "aggregation_coverage": None if coverage is None else coverage.model_dump(mode="json"),
        "historical_coverage": None if history is None else history.model_dump(mode="json"),
        "selected": selection.table.num_rows,
        "reasons": list(numbers),
    }
    return b"".join(
        (
            _head(head),
            facts.packed_ids[rows].tobytes(),
            floats(selection.table, "composite_score").astype(_SCORE, copy=False).tobytes(),
            packed_ids(texts(excluded, "node_id")),
            np.array([numbers[reason] for reason in reasons], _REASON).tobytes(),
        )
    )


def encode_failure(request: Request, error: Exception, *, setup: Setup) -> bytes:
    """Return the record of a request that ended in an error: what was asked, and the error's code or kind.

    What the error says is left out: it may quote a memory.
    """
    found = _asked(request, setup) | {
        "error": error.code if isinstance(error, PrmeRayError) else type(error).__name__,
        "candidates_generated": {},
        "candidates_after_filter": 0,
        "objects_included_in_bundle": 0,
        "tokens_used": 0,
        "selected": 0,
        "reasons": [],
    }
    return _head(found)


def _asked(request: Request, setup: Setup) -> dict[str, Any]:
    """Return the fields that are known before anything is searched."""
    return {
        "request_id": request.request_id,
        "tenant": request.tenant,
        "user_id": request.owner,
        "query": request.query,
        "reference_time": iso(request.reference_time),
        **{name: _time(getattr(request, name)) for name in _BOUNDS},
        "namespace_scope": sorted(Scope if request.scopes is None else request.scopes),
        "scope_filter": None if request.scopes is None else sorted(request.scopes),
        "retrieval_mode": request.mode,
        "context_budget": request.packing.token_budget,
        "tokenizer": request.packing.tokenizer,
        "min_score": request.min_score,
        "result_limit": request.limit,
        "max_per_source": request.max_per_source,
        "max_per_evidence": request.max_per_evidence,
        "snapshot": setup.snapshot,
        "embedding_model_version": setup.encoder,
        "embedding_mismatch": setup.embedding_mismatch,
        "reranker": setup.reranker,
        "scoring_config_version": setup.scoring_version,
        "settings_fingerprint": setup.fingerprint,
    }


def _head(fields: dict[str, Any]) -> bytes:
    text = _JSON.encode(fields).encode()
    return len(text).to_bytes(_LENGTH, "big") + text


def decode_record(payload: bytes) -> dict[str, Any]:
    """Return a record as the RFC's JSON object, with ``scores`` and ``excluded`` by id.

    What follows from other fields is not stored: ``candidates_included`` and ``token_budget`` (the
    reference's names), ``backends_used`` and ``selection_excluded``.
    """
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
    by_selection = {name: reason for name, reason in record["excluded"].items() if reason in _BY_SELECTION}
    return record | {
        "selection_excluded": by_selection,
        "candidates_included": record["objects_included_in_bundle"],
        "token_budget": record["context_budget"],
        "backends_used": [path for path, count in record["candidates_generated"].items() if count],
    }


def _time(value: datetime | None) -> str | None:
    return None if value is None else iso(value)


def _names(packed: bytes) -> list[str]:
    return [str(uuid.UUID(bytes=packed[at : at + _ID])) for at in range(0, len(packed), _ID)]
