"""What a failure of PostgreSQL means to the caller, by its SQLSTATE and by what was going on."""

from __future__ import annotations

from enum import Enum

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from prme_ray.model.errors import InvalidSettings, PrmeRayError, StoreBusy, StoreCorrupt, WriteFailed

__all__ = ["Moment", "driver_failure", "translated"]

# Class 08: connection exceptions; 57P: the server was stopped, crashed or is starting.
_LOST = ("08", "57P")
# Lock and statement time-outs, deadlock, a client that stood still, too many connections.
_BUSY = ("55P03", "57014", "40", "25P03", "25P04", "53300")
_STANDBY = "25006"
_REFUSED = ("28", "3D000", "42501")
# A refused login has no SQLSTATE in the driver, only the server's words.
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no password supplied",
    "pg_hba.conf",
    "not permitted to log in",
)
_DAMAGED = ("XX001", "XX002", "42P01", "42703", "3F000")


class Moment(Enum):
    """What was going on when the database failed."""

    CONNECTING = "connecting"
    READING = "reading"
    WRITING = "writing"
    COMMITTING = "committing"


def translated(error: SQLAlchemyError, *, path: str, moment: Moment, waited_s: float) -> PrmeRayError:
    """Return what a failure means. The message holds the state and the server's own sentence only.

    The sentence is the primary one: the details of a constraint name the values of a row.

    Args:
        error: As raised by SQLAlchemy.
        path: The log, for the message.
        moment: What was going on.
        waited_s: Time since it began, in seconds.

    Returns:
        :class:`StoreBusy` where the server cannot be reached or a lock is not free, and nothing was
        written; :class:`WriteFailed` where a transaction failed, with ``durable`` false, or ``None``
        where the answer to its commit was lost; :class:`InvalidSettings` where the server refuses
        the login; :class:`StoreCorrupt` where what is there is no log.
    """
    state, sentence = _facts(error)
    return _meaning(state, sentence, path=path, moment=moment, waited_s=waited_s)


def driver_failure(error: Exception, *, path: str) -> PrmeRayError:
    """Return what a failure of the driver means, outside SQLAlchemy and while nothing is written."""
    state, sentence = _said(error, lost=True)
    return _meaning(state, sentence, path=path, moment=Moment.CONNECTING, waited_s=0.0)


def _meaning(state: str, sentence: str, *, path: str, moment: Moment, waited_s: float) -> PrmeRayError:
    if state.startswith(_REFUSED) or (not state and any(words in sentence for words in _REFUSALS)):
        return InvalidSettings(
            argument="storage.database_url",
            given=f"{path} ({sentence})",
            allowed="a database that exists, and a role that may log in and create schemas in it",
        )
    if state.startswith(_BUSY):
        return StoreBusy(what=f"the log {path} ({sentence})", waited_s=waited_s)
    if not state or state.startswith(_LOST):
        return _lost(path, sentence, moment, waited_s)
    if state == _STANDBY:
        return StoreBusy(what=f"the log {path} (the server takes no writes: {sentence})", waited_s=waited_s)
    if state.startswith(_DAMAGED) or moment in {Moment.READING, Moment.CONNECTING}:
        return StoreCorrupt(path=path, detail=f"cannot be read as a log: {sentence}")
    return WriteFailed(detail=f"{path}: {sentence}", durable=False)


def _lost(path: str, sentence: str, moment: Moment, waited_s: float) -> PrmeRayError:
    if moment is Moment.COMMITTING:
        detail = f"{path}: the answer to the commit was lost ({sentence}); send the same write again to find out"
        return WriteFailed(detail=detail, durable=None)
    if moment is Moment.WRITING:
        return WriteFailed(detail=f"{path}: the connection was lost before the commit ({sentence})", durable=False)
    return StoreBusy(what=f"the database of {path} ({sentence})", waited_s=waited_s)


def _facts(error: SQLAlchemyError) -> tuple[str, str]:
    """Return SQLSTATE, empty where there is none, and what the server said."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if cause is None:  # no free connection in the pool, or one that was lost earlier in the transaction
        return "", "no connection to the server"
    return _said(cause, lost=isinstance(error, OperationalError | InterfaceError))


def _said(cause: BaseException, *, lost: bool) -> tuple[str, str]:
    diagnosis = getattr(cause, "diag", None)
    sentence = getattr(diagnosis, "message_primary", None)
    state = getattr(cause, "sqlstate", None) or ""
    if sentence is None:
        # Raised by the client: a connection that failed or was lost, or a value that cannot be sent.
        sentence = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        if not state and not lost:
            state = "22000"
    return state, sentence if not state else f"{sentence}, SQLSTATE {state}"
