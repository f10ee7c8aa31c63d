"""A retrieval record as it is read, and the RFC's JSON object made of it (RFC §10, decision 19)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from prme_ray.model.enums import Scope
from prme_ray.model.errors import StoreCorrupt
from prme_ray.model.request import BOUNDS
from prme_ray.records.columns import Column, unpack_columns
from prme_ray.records.derived import restored
from prme_ray.records.encode import MARK
from stages.render_record import LEVELS

__all__ = ["RetrievalRecord", "decode_record"]

_BY_SELECTION = frozenset({"below_threshold", "source_limit", "evidence_limit", "result_limit"})
_LENGTH = 4


@dataclass(frozen=True)
class RetrievalRecord:
    """What :mod:`prme_ray.records.encode` wrote.

    Attributes:
        head: What was asked, with which settings, and what the answer said of itself.
        columns: Scores, lineage and exclusions; memories by their number among the owner's.
    """

    head: dict[str, Any]
    columns: dict[str, Column]

    @property
    def failed(self) -> bool:
        """Whether the request ended in an error: there is then no result to account for."""
        return self.head["error"] is not None

    @property
    def confined_to(self) -> Scope | None:
        """The only scope that the request could see anything of, hints included; ``None``: it saw several."""
        scopes = self.head["scopes"]
        return Scope(scopes[0]) if scopes and len(scopes) == 1 and not self.head["include_cross_scope"] else None

    @cached_property
    def memories(self) -> list[int]:
        """Numbers of the selected candidates, best first."""
        return self.columns["memory"].tolist() if self.columns else []

    @property
    def excluded(self) -> list[int]:
        """Numbers of the memories left out before packing, in the order decided."""
        return self.columns["excluded"].tolist() if self.columns else []

    @property
    def levels(self) -> list[str | None]:
        """Representation of each candidate in the context; ``None``: it is not in it."""
        return [None if not level else LEVELS[level - 1] for level in self.columns["level"].tolist()]

    def named(self, ids: list[str]) -> dict[str, Any]:
        """Return the RFC's JSON object.

        Args:
            ids: Id of every memory of the owner, by number.
        """
        head = self.head
        scores: dict[str, float] = {}
        excluded: dict[str, str] = {}
        if not self.failed:
            scores = dict(zip((ids[number] for number in self.memories), self.columns["score"].tolist(), strict=True))
            reasons = [head["reasons"][number] for number in self.columns["excluded_reason"].tolist()]
            excluded = dict(zip((ids[number] for number in self.excluded), reasons, strict=True))
        snapshot = head.get("snapshot") or {}
        return {
            "request_id": head["request_id"],
            "tenant": head["tenant"],
            "user_id": head["user_id"],
            "query": head["query"],
            "reference_time": head["reference_time"],
            **{name: head[name] for name in BOUNDS},
            "as_of": head["as_of"],
            "namespace_scope": sorted(Scope) if head["scopes"] is None else head["scopes"],
            "scope_filter": head["scopes"],
            "retrieval_mode": head["retrieval_mode"],
            "query_intent": head.get("query_intent"),
            "query_time_from": head.get("query_time_from"),
            "query_time_to": head.get("query_time_to"),
            "alternate_queries": head.get("alternate_queries", []),
            "error": head["error"],
            "candidates_generated": head["candidates_generated"],
            "candidates_after_filter": head["candidates_after_filter"],
            "candidates_filtered": len(excluded),
            "objects_included_in_bundle": head["objects_included_in_bundle"],
            "candidates_included": head["objects_included_in_bundle"],
            "tokens_used": head["tokens_used"],
            "context_budget": head["token_budget"],
            "token_budget": head["token_budget"],
            "tokenizer": json.loads(head["settings"])["packing"]["tokenizer"],
            "scores": scores,
            "excluded": excluded,
            "selection_excluded": {name: reason for name, reason in excluded.items() if reason in _BY_SELECTION},
            "min_score": head["min_score"],
            "min_score_skipped": head.get("min_score_skipped", False),
            "result_limit": head["limit"],
            "max_per_source": head["max_per_source"],
            "max_per_evidence": head["max_per_evidence"],
            "embedding_model_version": head["encoder"],
            "embedding_mismatch": head["embedding_mismatch"],
            "reranker": head["reranker"],
            "backends_used": [path for path, count in head["candidates_generated"].items() if count],
            "backend_failures": head.get("backend_failures", {}),
            "scoring_config_version": head["scoring_config_version"],
            "settings_fingerprint": head["settings_fingerprint"],
            "aggregation_coverage": head.get("aggregation_coverage"),
            "historical_coverage": head.get("historical_coverage"),
            "cross_scope_hint_count": len(self.columns["hint"]) if self.columns else 0,
            "snapshot": snapshot.get("sequence", 0),
        }


def decode_record(payload: bytes) -> RetrievalRecord:
    """Return a record's contents.

    Raises:
        StoreCorrupt: the bytes are no record of this form, or damaged.
    """
    if payload[: len(MARK)] != MARK:
        raise StoreCorrupt(path="a retrieval record", detail=f"it does not begin with {MARK!r}")
    start = len(MARK) + _LENGTH
    size = int.from_bytes(payload[len(MARK) : start], "big")
    try:
        raw = pa.Codec("zstd").decompress(payload[start:], decompressed_size=size, asbytes=True)
        length = int.from_bytes(raw[:_LENGTH], "big")
        head: dict[str, Any] = json.loads(raw[_LENGTH : _LENGTH + length])
        columns = restored(unpack_columns(head.pop("columns"), raw[_LENGTH + length :]), head.pop("rules", {}))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise StoreCorrupt(
            path="a retrieval record", detail=f"it cannot be unpacked ({type(error).__name__})"
        ) from error
    return RetrievalRecord(head, columns)
