"""A store in a temporary folder, opened with real parts."""

import pytest

from prme_ray import Memory
from tests.memory.tools import FEW_SHARDS, Clock, Ids, WordEncoder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def opened(folder):
    """Open the store with word vectors, a clock and ids of our own; everything is closed at the end."""
    open_memories = []

    def open_memory(path=folder, *, settings=None, **options):
        options.setdefault("encoder", WordEncoder())
        options.setdefault("clock", Clock())
        options.setdefault("new_id", Ids(f"open {len(open_memories)}"))
        memory = Memory.open(path, settings=FEW_SHARDS | (settings or {}), **options)
        open_memories.append(memory)
        return memory

    yield open_memory
    for memory in reversed(open_memories):
        memory.close()


@pytest.fixture
def memory(opened):
    return opened()
