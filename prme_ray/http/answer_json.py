"""An answer as JSON, straight from its Arrow tables (decision 18: everything the Python call returns).

A benchmark answer has 600 candidates of 55 values each, a megabyte of JSON; as pydantic records it
takes a hundred milliseconds to build and to dump. Here every column is made into pieces of JSON at
once and all pieces are joined once. The bytes are those of ``orjson.dumps(answer.to_dict())``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import orjson
import pyarrow as pa

from prme_ray.answer import Answer
from prme_ray.candidates import Candidates, Exclusions
from prme_ray.http.lineage_json import lineage_pieces
from prme_ray.http.memory_json import MemoryPiece, memory_pieces
from prme_ray.http.pieces import Pieces, counts, flags, ids, interleave, numbers, strings
from prme_ray.model.enums import path_names
from prme_ray.model.tables import bools, column, floats, ints, same_target, texts

__all__ = ["AnswerEncoder"]

_PATHS = [orjson.dumps(path_names(mask)) for mask in range(128)]
_Known = tuple[pa.StructArray, dict[int, MemoryPiece]]


class AnswerEncoder:
    """Encodes answers; keeps the constant part of memories that are answered again. Safe for threads.

    Args:
        memory_bytes: Most bytes of kept parts. An owner's are dropped when it writes.
    """

    def __init__(self, *, memory_bytes: int = 64 << 20) -> None:
        self._limit = memory_bytes
        self._size = 0
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Bytes of kept parts."""
        return self._size

    def encode(self, answer: Answer) -> bytes:
        """Return the answer as JSON bytes."""
        return b"".join(
            [
                b'{"bundle":',
                orjson.dumps(answer.bundle.model_dump(mode="json")),
                b',"results":',
                self._candidates(answer.results),
                b',"excluded":',
                _exclusions(answer.excluded),
                b',"cross_scope_hints":',
                self._candidates(answer.cross_scope_hints),
                b',"metadata":',
                orjson.dumps(answer.metadata.model_dump(mode="json")),
                b"}",
            ]
        )

    def _candidates(self, candidates: Sequence[Any]) -> bytes:
        if not isinstance(candidates, Candidates):
            return orjson.dumps([candidate.model_dump(mode="json") for candidate in candidates])
        if not len(candidates):
            return b"[]"
        table = candidates.table
        memories = self._memories(table)
        contradicts = texts(table, "contradicts_id")
        names = [memory.node_id for memory in memories]
        levels = list(map(candidates.levels.get, names))
        costs = list(map(candidates.token_costs.get, names, repeat(-1)))
        reasons = candidates.default_reasons
        return interleave(
            [memory.head for memory in memories],
            numbers(b"", floats(table, "composite_score")),
            numbers(b',"semantic_relevance":', floats(table, "semantic_relevance")),
            [memory.tail for memory in memories],
            [_PATHS[mask] for mask in ints(table, "paths").tolist()],
            numbers(b',"path_count":', ints(table, "path_count")),
            numbers(b',"semantic_score":', floats(table, "semantic_score")),
            numbers(b',"lexical_score":', floats(table, "lexical_score")),
            numbers(b',"graph_proximity":', floats(table, "graph_proximity")),
            flags(b',"has_own_trace":', bools(table, "has_own_trace").tolist()),
            b',"lineage":',
            *lineage_pieces(table),
            numbers(b',"reranker_score":', floats(table, "reranker_score")),
            b',"session_context_link":',
            _links(table),
            flags(b',"conflict_flag":', [value is not None for value in contradicts]),
            ids(b',"contradicts_id":', contradicts),
            strings(b',"representation":', levels),
            counts(b',"token_cost":', costs),
            flags(b',"in_context":', [level is not None for level in levels]),
            b',"default_exclusion":null' if reasons is None else strings(b',"default_exclusion":', reasons),
            b"}",
            rows=table.num_rows,
        )

    def _memories(self, table: pa.Table) -> list[MemoryPiece]:
        reference = column(table, "node")
        rows = reference.indices.to_numpy().tolist()
        known = self._of(reference.dictionary)
        missing = sorted({row for row in rows if row not in known})
        if missing:
            self._keep(known, missing, memory_pieces(reference.dictionary.take(pa.array(missing))))
        return [known[row] for row in rows]

    def _of(self, target: pa.StructArray) -> dict[int, MemoryPiece]:
        # Requests of one owner refer to one array until the owner writes; holding it keeps its address its own.
        buffer = target.field(0).buffers()[-1]
        address = 0 if buffer is None else int(buffer.address)
        with self._lock:
            found = self._known.get(address)
            if found is None or not same_target(found[0], target):
                self._size -= 0 if found is None else _total(found)
                found = self._known[address] = (target, {})
            self._known.move_to_end(address)
            return found[1]

    def _keep(self, known: dict[int, MemoryPiece], rows: list[int], pieces: list[MemoryPiece]) -> None:
        with self._lock:
            added = sum(_size(piece) for row, piece in zip(rows, pieces, strict=True) if row not in known)
            known.update(zip(rows, pieces, strict=True))
            # Another thread may have let go of these memories meanwhile; then they are this answer's alone.
            if any(known is kept for _, kept in self._known.values()):
                self._size += added
            while self._size > self._limit:
                _, oldest = self._known.popitem(last=False)
                self._size -= _total(oldest)


def _size(piece: MemoryPiece) -> int:
    return len(piece.head) + len(piece.tail)


def _total(known: _Known) -> int:
    return sum(map(_size, known[1].values()))


def _links(table: pa.Table) -> Pieces:
    triggers = column(table, "session_trigger_id")
    if triggers.null_count == len(triggers):
        return b"null"
    return [
        b"null" if trigger is None else b'{"trigger_id":%b,"offset":%d}' % (orjson.dumps(trigger), offset)
        for trigger, offset in zip(triggers.to_pylist(), ints(table, "session_offset").tolist(), strict=True)
    ]


def _exclusions(excluded: Sequence[Any]) -> bytes:
    if not isinstance(excluded, Exclusions):
        return orjson.dumps([item.model_dump(mode="json") for item in excluded])
    if not len(excluded):
        return b"[]"
    table = excluded.table
    return interleave(
        ids(b'{"node_id":', texts(table, "node_id")),
        strings(b',"reason":', texts(table, "reason")),
        numbers(b',"composite_score":', floats(table, "composite_score")),
        numbers(b',"semantic_relevance":', floats(table, "semantic_relevance")),
        b"}",
        rows=len(excluded),
    )
