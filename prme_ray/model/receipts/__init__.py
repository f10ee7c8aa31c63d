"""Receipts: what a retrieval saw and returned, written so that its scores can be derived again (digest b §3)."""

from prme_ray.model.receipts.canonical import (
    canonical_json,
    checked,
    checksum_of,
    parse_receipt,
    read_receipt,
    verify_receipt,
)
from prme_ray.model.receipts.schema import Receipt
from prme_ray.model.receipts.versions import recorded_packing, recorded_scoring, version_for

__all__ = [
    "Receipt",
    "canonical_json",
    "checked",
    "checksum_of",
    "parse_receipt",
    "read_receipt",
    "recorded_packing",
    "recorded_scoring",
    "verify_receipt",
    "version_for",
]
