"""Fixtures and settings of the whole suite."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres import Server, binaries

# Shared machines make a deadline a coin toss. In CI the examples are the same on every run.
settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server for this run of the tests."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian package postgresql)")
    pytest.importorskip("psycopg", reason="the driver is not installed (extra postgres)")
    server = Server(programs)
    yield server
    server.remove()


@pytest.fixture(scope="session")
def shared():
    """Folder ``shared`` beside the checkout: golden files, specifications and data."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder 'shared' is not beside this checkout")
    return folder
