"""Says in the database that a writer has a store open, or that it must have none.

Only a sign, for whoever copies a store: it goes with its connection. What keeps two writers apart is
the epoch that every append checks, which needs no connection to last.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from prme_ray.model.errors import StoreBusy
from storage.postgres_errors import driver_failure
from storage.postgres_server import BUSY_S, PostgresServer

__all__ = ["Presence"]


class Presence:
    """A lock of a database session, shared by writers or held alone.

    Args:
        server: The database.
        prefix: Name of the store in the database.
        alone: No writer may have the store open, nor open it.

    Raises:
        StoreBusy: ``alone`` and a writer has the store open, or somebody has it alone; or the
            database cannot be reached.
        InvalidSettings: the server refuses the login.
    """

    def __init__(self, server: PostgresServer, *, prefix: str, alone: bool = False) -> None:
        import psycopg

        path = f"{server.address}#{prefix}"
        # Writers wait a moment, as long as for any lock: a copy that is over frees it in its own time.
        lock = "pg_try_advisory_lock" if alone else "pg_advisory_lock_shared"
        self._connection: Any = None
        try:
            self._connection = server.connect()
            self._connection.autocommit = True
            name = f"prme-ray writers {prefix}"
            row = self._connection.execute(f"SELECT {lock}(hashtextextended(%s, 0))", (name,)).fetchone()
        except psycopg.errors.LockNotAvailable:
            self.close()
            raise StoreBusy(what=f"the store {path} (it is being copied)", waited_s=BUSY_S) from None
        except psycopg.Error as error:
            self.close()
            raise driver_failure(error, path=path) from None
        if alone and not row[0]:
            self.close()
            raise StoreBusy(what=f"the store {path} (a writer has it open)", waited_s=0.0)

    def close(self) -> None:
        """Take the sign away, at once. Repeatable."""
        import psycopg

        connection, self._connection = self._connection, None
        if connection is None:
            return
        # A server notices a closed connection only some time later. One that is lost holds nothing.
        with suppress(psycopg.Error):
            connection.execute("SELECT pg_advisory_unlock_all()")
        connection.close()
