"""PostgreSQL as the log's database: its connections, and what its failures mean.

One pool serves all shards of a store in a process. A commit returns when the server has it on disk
(``synchronous_commit=on``). The server ends a transaction whose client stands still, so a paused
writer cannot keep a newer one out, and a connection whose other end is gone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from prme_ray.model.errors import InvalidSettings
from storage.postgres_errors import Moment, translated

__all__ = ["BUSY_S", "PostgresServer"]

_CONNECTIONS = 8
"""Connections kept open; as many again while more threads want one."""
BUSY_S = 5.0
"""Longest wait for a connection, or for another transaction's lock, in seconds."""
_STATEMENT_S = 60
_STANDSTILL_S = 15
"""Time after which the server ends a transaction whose client sends nothing."""

_SESSION = {
    "synchronous_commit": "on",
    "default_transaction_isolation": r"read\ committed",
    "lock_timeout": f"{int(BUSY_S * 1000)}",
    "statement_timeout": f"{_STATEMENT_S * 1000}",
    "idle_in_transaction_session_timeout": f"{_STANDSTILL_S * 1000}",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "client_min_messages": "warning",
}
_CLIENT: Mapping[str, str] = {
    "application_name": "prme-ray",
    "connect_timeout": f"{int(BUSY_S)}",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": f"{_STANDSTILL_S * 1000}",
}
"""Parameters of libpq that the URL may set otherwise."""


class PostgresServer:
    """A database of a PostgreSQL server. Usable from any thread of the process that made it.

    Args:
        url: ``postgresql://user:password@host:port/database?…``, with any parameter of libpq.

    Raises:
        InvalidSettings: ``url`` cannot be read, or the driver is not installed. Messages never hold it.
    """

    def __init__(self, url: str) -> None:
        self._parameters = _parameters(url)
        self.address = _address(self._parameters)
        """Host, port and database, for messages."""
        # A connection is tried before it is lent: after a restart of the server nobody gets a dead one.
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=self.connect,
            poolclass=QueuePool,
            pool_size=_CONNECTIONS,
            max_overflow=_CONNECTIONS,
            pool_timeout=BUSY_S,
            pool_pre_ping=True,
            pool_use_lifo=True,
            hide_parameters=True,  # they are memories
            use_native_hstore=False,
        )

    def connect(self) -> Any:
        """Return a new connection of the driver, outside the pool.

        Raises:
            psycopg.OperationalError: the server cannot be reached or refuses.
        """
        import psycopg

        return psycopg.connect(**self._parameters)

    @contextmanager
    def reading(self, schema: str, *, path: str) -> Iterator[Connection]:
        """Return a connection whose every statement sees the last commit.

        Args:
            schema: Where tables without a schema are.
            path: What is read, for messages.

        Raises:
            StoreBusy, StoreCorrupt, InvalidSettings: see :func:`storage.postgres_errors.translated`.
        """
        with self._connected(_options(self._engine, schema, autocommit=True), path, Moment.READING) as connection:
            yield connection

    @contextmanager
    def writing(self, schema: str, *, path: str) -> Iterator[Connection]:
        """Return a connection in a transaction that is committed when the block ends well.

        Raises:
            StoreBusy, WriteFailed, StoreCorrupt, InvalidSettings: see
                :func:`storage.postgres_errors.translated`.
        """
        with self._connected(_options(self._engine, schema, autocommit=False), path, Moment.WRITING) as connection:
            transaction = connection.begin()
            try:
                yield connection
            except BaseException:
                if transaction.is_active:
                    transaction.rollback()
                raise
            started = time.monotonic()
            try:
                transaction.commit()
            except (DBAPIError, PendingRollbackError) as error:
                waited_s = time.monotonic() - started
                raise translated(error, path=path, moment=Moment.COMMITTING, waited_s=waited_s) from None

    def close(self) -> None:
        """Close the connections that nobody uses; the others when they are given back. Repeatable."""
        self._engine.dispose()

    @contextmanager
    def _connected(self, engine: Engine, path: str, moment: Moment) -> Iterator[Connection]:
        started = time.monotonic()
        try:
            connection = engine.connect()
        except (DBAPIError, PoolTimeout) as error:
            waited_s = time.monotonic() - started
            raise translated(error, path=path, moment=Moment.CONNECTING, waited_s=waited_s) from None
        try:
            with connection:
                yield connection
        except (DBAPIError, PendingRollbackError) as error:
            waited_s = time.monotonic() - started
            # The driver's own error would show the values of a statement in a traceback.
            raise translated(error, path=path, moment=moment, waited_s=waited_s) from None


def _options(engine: Engine, schema: str, *, autocommit: bool) -> Engine:
    options: dict[str, Any] = {"schema_translate_map": {None: schema}}
    if autocommit:
        options["isolation_level"] = "AUTOCOMMIT"
    return engine.execution_options(**options)


def _parameters(url: str) -> dict[str, Any]:
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise InvalidSettings(
            argument="storage.database_url",
            given="a PostgreSQL database",
            allowed="it with the driver installed: pip install 'prme-ray[postgres]'",
        ) from None
    try:
        given = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else None
    except Error:
        given = None
    if not given:
        # What was given may hold a password, the driver's message as well.
        raise InvalidSettings(
            argument="storage.database_url",
            given="something else (not shown)",
            allowed="postgresql://user:password@host:port/database",
        )
    settings = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
    return {**_CLIENT, **given, "options": f"{settings} {given.get('options', '')}".strip()}


def _address(parameters: Mapping[str, Any]) -> str:
    host, port = parameters.get("host", "localhost"), parameters.get("port", "5432")
    return f"postgresql://{host}:{port}/{parameters.get('dbname', '')}"
