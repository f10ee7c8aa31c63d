"""Log entries for tests, and a log that is a list of them."""

from datetime import UTC, datetime, timedelta

import numpy as np

from prme_ray.model.enums import EdgeType
from prme_ray.model.nodes import Edge, Event, Node
from storage.records import EntryKind, LogRow

START = datetime(2026, 1, 1, tzinfo=UTC)
DIMENSION = 8


def uuid(kind: str, number: int) -> str:
    return f"{kind}0000000-0000-4000-8000-{number:012d}"


def unit(values) -> bytes:
    vector = np.asarray(values, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


def node(seq: int, *, owner_no: int = 1, vector: bytes | None = None, content: str | None = None, **fields) -> LogRow:
    time = START + timedelta(seconds=seq)
    record = Node(
        id=uuid("a", seq),
        content=f"memory {seq}" if content is None else content,
        created_at=time,
        updated_at=time,
        valid_from=time,
        last_reinforced_at=time,
        **fields,
    )
    return LogRow(seq, owner_no, seq, EntryKind.NODE, record.id, record.model_dump_json(), seq, vector)


def edge(seq: int, source: int, target: int, *, owner_no: int = 1, **fields) -> LogRow:
    time = START + timedelta(seconds=seq)
    record = Edge(
        id=uuid("e", seq),
        source_id=uuid("a", source),
        target_id=uuid("a", target),
        edge_type=EdgeType.MENTIONS,
        created_at=time,
        valid_from=time,
        **fields,
    )
    return LogRow(seq, owner_no, seq, EntryKind.EDGE, record.id, record.model_dump_json(), seq)


def event(seq: int, *, owner_no: int = 1) -> LogRow:
    record = Event(id=uuid("f", seq), content=f"said {seq}", timestamp=START, content_hash="0")
    return LogRow(seq, owner_no, seq, EntryKind.EVENT, record.id, record.model_dump_json(), seq)


def stored(count: int, *, owners: int = 3) -> list[LogRow]:
    """Entries of ``count`` plain stores: an event, a memory and an edge to the memory before."""
    rows: list[LogRow] = []
    for number in range(count):
        owner_no, seq = 1 + number % owners, 3 * number + 1
        vector = unit(np.random.default_rng(seq).normal(size=DIMENSION))
        rows.append(event(seq, owner_no=owner_no))
        rows.append(node(seq + 1, owner_no=owner_no, vector=vector))
        rows.append(edge(seq + 2, seq + 1, max(2, seq - 2), owner_no=owner_no))
    return rows


class ListedLog:
    """Keeps entries in memory; what a test needs of the log, in the order of ``seq``."""

    def __init__(self, rows: list[LogRow] | None = None) -> None:
        self.rows = list(rows or [])
        self.epoch = 0
        self.path = "a list"

    def current_epoch(self) -> int:
        return self.epoch

    def last_seq(self) -> int:
        return self.rows[-1].seq if self.rows else 0

    def read(self, *, after=0, upto=None, owner_no=None, generation=None, limit=None) -> list[LogRow]:
        found = self.rows[after:upto]  # seq is dense from 1
        if owner_no is not None:
            found = [row for row in found if row.owner_no == owner_no]
        return found[:limit]
