"""A receipt as text: its canonical bytes, their checksum, and reading them back (digest b §3.3)."""

from __future__ import annotations

import hashlib

import orjson
from pydantic import ValidationError

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts.rules import problem
from prme_ray.model.receipts.schema import RECEIPT, Receipt

__all__ = ["canonical_json", "checked", "checksum_of", "parse_receipt", "read_receipt", "verify_receipt"]


def canonical_json(receipt: Receipt) -> str:
    """Return a receipt's text: JSON without spaces, keys as declared, shortest floats, no escapes but needed ones.

    Equal receipts give equal text; a receipt of :func:`read_receipt` gives the text it was read from.
    """
    return orjson.dumps(receipt).decode()


def checksum_of(text: str) -> str:
    """Return the SHA-256 of a receipt's text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse_receipt(text: str, *, request_id: str) -> Receipt:
    """Return a text as a receipt that breaks no rule of its version. Scores are not replayed.

    Args:
        text: Any text.
        request_id: The request it is said to be of, for the message.

    Raises:
        ReceiptRejected: ``failed_at`` is ``validation``. No other exception, whatever the text is.
    """
    try:
        receipt = RECEIPT.validate_json(text)
    except ValidationError as error:
        raise _refused(request_id, _first(error)) from None
    broken = problem(receipt)
    if broken is not None:
        raise _refused(request_id, broken)
    return receipt


def verify_receipt(receipt: Receipt, text: str, *, checksum: str, request_id: str, owner: str) -> None:
    """Check that a parsed receipt is the stored one: written again it is the same text, with that checksum.

    Args:
        receipt: What :func:`parse_receipt` made of ``text``.
        text: The stored text.
        checksum: The SHA-256 stored beside it.
        request_id: The request it must be of.
        owner: The owner it must be of.

    Raises:
        ReceiptRejected: ``failed_at`` is ``checksum``.
    """
    if canonical_json(receipt) != text or checksum_of(text) != checksum:
        raise _refused(request_id, "the text is not the one that was stored", "checksum")
    if receipt["request_id"] != request_id or receipt["user_id"] != owner:
        raise _refused(request_id, "it is of another request or of another owner", "checksum")


def read_receipt(text: str, *, checksum: str, request_id: str, owner: str) -> Receipt:
    """Return a stored receipt, or refuse it. Scores are not replayed; ``stages.replay`` does that.

    Args:
        text: The stored text.
        checksum: The SHA-256 stored beside it.
        request_id: The request it must be of.
        owner: The owner it must be of.

    Raises:
        ReceiptRejected: see :func:`parse_receipt` and :func:`verify_receipt`. No other exception.
    """
    receipt = parse_receipt(text, request_id=request_id)
    verify_receipt(receipt, text, checksum=checksum, request_id=request_id, owner=owner)
    return receipt


def checked(receipt: Receipt) -> Receipt:
    """Return a newly made receipt with its keys in their declared order, after the checks of reading one.

    What fills each field: :func:`~prme_ray.model.receipts.versions.version_for` the version, ``recorded_scoring``
    and ``recorded_packing`` the settings, and, with what the question changed of them, every lineage's weights.

    Args:
        receipt: Plain values, keys in any order.

    Raises:
        ReceiptRejected: ``failed_at`` is ``validation``.
    """
    request_id = str(receipt["request_id"])
    try:
        found = RECEIPT.validate_python(receipt)
    except ValidationError as error:
        raise _refused(request_id, _first(error)) from None
    broken = problem(found)
    if broken is not None:
        raise _refused(request_id, broken)
    return found


def _first(error: ValidationError) -> str:
    """Say what is wrong and where, without the value: it may be a question."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'receipt'}: {first['msg']}"


def _refused(request_id: str, detail: str, failed_at: str = "validation") -> ReceiptRejected:
    return ReceiptRejected(request_id=request_id, failed_at=failed_at, detail=detail)
