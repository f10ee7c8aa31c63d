"""Steps that bring the tables of an older log to the present version, inside one transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

__all__ = ["STEPS"]


def _owner_numbers(connection: Connection) -> None:
    """Give every entry its owner's own number, in the order of the shard's numbers."""
    connection.execute(text("ALTER TABLE entries ADD COLUMN owner_seq INTEGER NOT NULL DEFAULT 0"))
    connection.execute(
        text(
            "UPDATE entries SET owner_seq = numbered.place FROM "
            "(SELECT seq, row_number() OVER (PARTITION BY owner_no ORDER BY seq) AS place FROM entries) AS numbered "
            "WHERE entries.seq = numbered.seq"
        )
    )


STEPS: dict[int, Callable[[Connection], None]] = {1: _owner_numbers}
"""Version a step starts from, to the step; it ends at the next version."""
