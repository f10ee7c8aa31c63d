"""The RETRIEVAL_REQUEST record of every request (RFC §10, decision 19).

A record is a JSON head and the scores and exclusions as compressed Arrow columns: a few kilobytes
for hundreds of candidates. It is appended after the answer was made and shares the next log commit,
so a request does not wait for it.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from prme_ray.answer import excluded_of
from prme_ray.model.request import Request
from prme_ray.model.times import iso
from prme_ray.steps.values import Selection
from stages.pack import Packed

__all__ = ["OP_TYPE", "decode_record", "encode_record"]

OP_TYPE = "RETRIEVAL_REQUEST"
_LENGTH = 4
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


def encode_record(request: Request, values: dict[str, Any], *, snapshot: int, encoder: str, fingerprint: str) -> bytes:
    """Return the record's bytes: length of the head, head, scores, exclusions."""
    selection: Selection = values["selection"]
    packed: Packed = values["packed"]
    merged = values["merged"]
    head = {
        "request_id": request.request_id,
        "query": request.query,
        "reference_time": iso(request.reference_time),
        "scope_filter": None if request.scopes is None else sorted(request.scopes),
        "retrieval_mode": request.mode,
        "query_intent": values["analysis"].intent,
        "snapshot": snapshot,
        "candidates_generated": dict(merged.counts),
        "candidates_after_filter": values["allowed"].table.num_rows,
        "objects_included_in_bundle": len(packed.included),
        "tokens_used": packed.tokens_used,
        "context_budget": request.packing.token_budget,
        "backend_failures": dict(values["failures"]),
        "min_score": request.min_score,
        "min_score_skipped": selection.min_score_skipped,
        "result_limit": request.limit,
        "embedding_model_version": encoder,
        "settings_fingerprint": fingerprint,
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"".join(
        (
            len(text).to_bytes(_LENGTH, "big"),
            text,
            _columns(selection.table.select(["node_id", "composite_score"])),
            _columns(excluded_of(values).select(["node_id", "reason"])),
        )
    )


def decode_record(payload: bytes) -> dict[str, Any]:
    """Return a record as the RFC's JSON object, with ``scores`` and ``excluded`` by id."""
    end = _LENGTH + int.from_bytes(payload[:_LENGTH], "big")
    record: dict[str, Any] = json.loads(payload[_LENGTH:end])
    rest = pa.BufferReader(payload[end:])
    scores = pa.ipc.open_stream(rest).read_all().to_pydict()
    left_out = pa.ipc.open_stream(rest).read_all().to_pydict()
    record["scores"] = dict(zip(scores["node_id"], scores["composite_score"], strict=True))
    record["excluded"] = dict(zip(left_out["node_id"], left_out["reason"], strict=True))
    return record


def _columns(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
