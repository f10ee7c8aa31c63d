"""Both places a log can be in, for the tests of the log's contract, and a committer in front of it."""

import pytest

from storage.commit import GroupCommit
from tests.storage.committing import NOW, Readers
from tests.storage.log_cases import Files, Schemas


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where the logs of a test are: ``open`` and ``another`` open one."""
    made = Files(tmp_path) if request.param == "sqlite" else Schemas(request.getfixturevalue("postgres").url())
    yield made
    made.close()


@pytest.fixture
def log(place):
    made = place.open()
    yield made
    made.close()


@pytest.fixture
def readers():
    return Readers()


@pytest.fixture
def start(log, readers):
    started: list[GroupCommit] = []

    def start(**options):
        made = GroupCommit(log, epoch=log.begin_epoch(), clock=lambda: NOW, on_commit=readers, **options)
        started.append(made)
        return made

    yield start
    readers.open.set()
    for made in started:
        made.close()
