"""What a log asks of its database: connections that see the last commit, and durable transactions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection

__all__ = ["Database"]


class Database(Protocol):
    """The tables of one shard's log. Usable from any thread; failures leave it as ``model.errors``."""

    @property
    def path(self) -> str:
        """Where it is, for messages; never a password."""
        ...

    @property
    def schema(self) -> str | None:
        """Schema of the tables, where the database has several."""
        ...

    @property
    def writable(self) -> bool:
        """Whether :meth:`writing` works."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection whose every statement sees the last commit.

        Raises:
            StoreBusy: the database cannot be reached, or is locked for too long.
            StoreCorrupt: it cannot be read as a log.
        """
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection in a transaction that is committed, durably, when the block ends well.

        Raises:
            StoreBusy: the database cannot be reached, or is locked for too long; nothing is written.
            WriteFailed: it failed; ``durable`` false: nothing is written; ``None``: the answer to the
                commit was lost, so it may be.
        """
        ...

    def prepare(self, connection: Connection) -> None:
        """Make room for the tables, and keep others from making them until the transaction ends."""
        ...

    def close(self) -> None:
        """Free connections. Repeatable."""
        ...
