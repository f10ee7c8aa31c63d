"""A real PostgreSQL server for tests: started in a folder, on a Unix socket, as a user that is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

_INSTALLED = Path("/usr/lib/postgresql")


def binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl of the newest server that is installed."""
    for folder in sorted(_INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


class Server:
    """One server, in a temporary folder of its own. ``fsync`` is on, as in production."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="prme-pg-", dir="/tmp"))  # a socket's path must be short
        self._user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-D", str(self.data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres", user: str = "tester") -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}"

    def start(self) -> None:
        settings = ["listen_addresses=", "max_connections=60", "shared_buffers=32MB"]
        settings += ["recovery_init_sync_method=syncfs"]
        options = " ".join([f"-k {self.folder}", *(f"-c {setting}" for setting in settings)])
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def make_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self.sql(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def remove(self) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        user = {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            check=False,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            # pg_ctl's server keeps what it inherits open, so a pipe would never end.
            stdout=(output := open(self.folder / "output", "ab")),  # noqa: SIM115
            stderr=output,
            timeout=90,
            **user,
        )
        output.close()
        if done.returncode:
            raise RuntimeError(f"{program}: {(self.folder / 'output').read_text()[-2000:]}")
