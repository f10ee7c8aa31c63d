"""Log entries of one owner with every field open, and a state made from them."""

from datetime import timedelta

import numpy as np

from prme_ray.model.enums import EdgeType, NodeType
from prme_ray.model.nodes import Edge, Node
from prme_ray.model.tables import texts
from storage.owner_state import OwnerState
from storage.records import EntryKind, LogRow
from tests.storage.log_rows import DIMENSION, START, unit, uuid

OWNER = 7


def at(seconds: float):
    return START + timedelta(seconds=seconds)


def memory(seq: int, content: str, *, vector: bytes | None = None, created: float | None = None, **fields) -> LogRow:
    time = at(seq if created is None else created)
    times = {"created_at": time, "updated_at": time, "valid_from": time, "last_reinforced_at": time}
    record = Node(**{"id": uuid("a", seq), "content": content, **times, **fields})
    return LogRow(seq, OWNER, seq, EntryKind.NODE, record.id, record.model_dump_json(), 0, vector)


def entity(seq: int, content: str, **fields) -> LogRow:
    return memory(seq, content, node_type=NodeType.ENTITY, **fields)


def link(seq: int, source: int, target: int, *, kind: EdgeType = EdgeType.MENTIONS, **fields) -> LogRow:
    time = at(seq)
    ends = {"source_id": uuid("a", source), "target_id": uuid("a", target)}
    record = Edge(**{"id": uuid("e", seq), **ends, "edge_type": kind, "created_at": time, "valid_from": time, **fields})
    return LogRow(seq, OWNER, seq, EntryKind.EDGE, record.id, record.model_dump_json(), 0)


def state_of(*rows: LogRow, **arguments) -> OwnerState:
    state = OwnerState(OWNER, dimension=DIMENSION, **arguments)
    state.apply(rows)
    return state


def random_vectors(count: int, seed: int = 0) -> list[bytes]:
    return [unit(row) for row in np.random.default_rng(seed).normal(size=(count, DIMENSION))]


def ids(table) -> list[str]:
    return texts(table, "node_id")


def numbers(table) -> list[int]:
    """The sequence numbers the ids of :func:`memory` were made from."""
    return [int(name[-12:]) for name in ids(table)]
