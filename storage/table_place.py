"""Where the LanceDB tables of a shard lie: a folder of this machine, or a URI that all machines reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

__all__ = ["TablePlace"]

TABLE = "rows"
"""Name of the LanceDB table in its place: one place, one table."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """One place. Small and picklable; :meth:`connect` makes the handle.

    Attributes:
        uri: What LanceDB is given, and what messages name.
        folder: The folder, where the place is one of this machine.
        shared: Whether it is a URI: a writer on another machine may then still be busy there when a
            new one has taken over, because no lock of this machine keeps it out.

    Example:
        >>> TablePlace.of("s3+ddb://bucket/memory?ddbTableName=commits").below("007", "nodes").uri
        's3+ddb://bucket/memory/007/nodes?ddbTableName=commits'
    """

    uri: str
    folder: Path | None
    shared: bool

    @classmethod
    def of(cls, place: str | os.PathLike[str]) -> TablePlace:
        """Return the place at a folder or, for text with ``://``, at a URI."""
        if not isinstance(place, str) or "://" not in place:
            return cls(os.fspath(place), Path(place), shared=False)
        # LanceDB takes the rest of a file: URI as it is, "%20" included.
        folder = Path(place.removeprefix("file://")) if place.startswith("file://") else None
        return cls(place, folder, shared=True)

    def below(self, *names: str) -> TablePlace:
        """Return a place below this one; a URI keeps its query."""
        if not self.shared:
            return TablePlace.of(Path(self.uri).joinpath(*names))
        head, mark, query = self.uri.partition("?")
        return TablePlace.of("/".join([head.rstrip("/"), *names]) + mark + query)

    def connect(self, *, fresh: bool) -> Any:
        """Return the LanceDB connection.

        Args:
            fresh: Look for a newer version of a table before every read.

        Raises:
            RuntimeError, OSError, ValueError: LanceDB cannot use the place.
        """
        import lancedb

        return lancedb.connect(self.uri, read_consistency_interval=timedelta(0) if fresh else None)

    def is_missing(self) -> bool:
        """Return whether there is certainly nothing yet, without making anything."""
        return self.folder is not None and not self.folder.is_dir()

    def holds_table(self) -> bool:
        """Return whether the table is there now, damaged or not.

        Raises:
            RuntimeError, OSError: LanceDB cannot say.
        """
        if self.is_missing():
            return False
        try:
            self.connect(fresh=True).open_table(TABLE)
        except ValueError:
            return False
        return True

    def files(self) -> int | None:
        """Return the number of files, or ``None`` where only the object store could count them."""
        if self.folder is None:
            return None
        # os.walk passes over folders that a compaction removes meanwhile.
        return sum(len(names) for _, _, names in os.walk(self.folder))
