"""Both places a log can be in, for the tests of the log's contract."""

import pytest

from tests.storage.log_cases import Files, Schemas


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where the logs of a test are: ``open`` and ``another`` open one."""
    made = Files(tmp_path) if request.param == "sqlite" else Schemas(request.getfixturevalue("postgres").url())
    yield made
    made.close()
