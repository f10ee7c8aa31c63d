"""Receipts of the reference, whole and altered: which are accepted, and what the accepted ones derive."""

from __future__ import annotations

from typing import Any

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts import parse_receipt, verify_receipt
from stages.replay import replay


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Return whether the receipt is accepted, and of an accepted one what it derives.

    Replaying accepts nothing but equality; the runner's 1e-12 forgives nothing that it did not.
    """
    given = case["given"]
    text, request_id = given["receipt"], given["request_id"]
    try:
        receipt = parse_receipt(text, request_id=request_id)
        replayed = replay(receipt)
        # In this order: what contradicts itself is refused as such, whatever its checksum.
        verify_receipt(receipt, text, checksum=given["stored_checksum"], request_id=request_id, owner=given["user_id"])
    except ReceiptRejected as error:
        return {"accepted": False, "failed_at": error.failed_at}
    return {
        "accepted": True,
        "failed_at": None,
        "schema_version": receipt.get("schema_version"),
        "ranking_policy": receipt.get("ranking_policy"),
        "ranking": list(replayed.ranking),
        "scores": replayed.scores,
    }
