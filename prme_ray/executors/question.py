"""What crosses a process border when a fragment is computed away: a question there, hits back.

A question is the pickled plan, a few hundred bytes. The hits go back as Arrow IPC of two narrow
columns, row of the memory and signal, 12 bytes a hit: both sides hold the owner at the same number, so
a row means the same memory on both.
"""

from __future__ import annotations

import json
import pickle
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from prme_ray.executors.engine import Outcome, call, call_or_empty
from prme_ray.model.tables import column, no_hits
from prme_ray.pipeline import Fragment, Place, fragment
from prme_ray.steps.values import Scans
from storage.records import OwnerKey
from storage.store import Store
from storage.view import OwnerView

__all__ = [
    "Question",
    "graph_answer",
    "lexical_answer",
    "outcome_of",
    "packed_question",
    "question_text",
    "vector_answer",
]

_HITS = pa.schema([pa.field("row", pa.int32(), nullable=False), pa.field("signal", pa.float64(), nullable=False)])
_SIZE = struct.Struct("<I")
"""Bytes of what is said beside the hits, at the very end."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the process of a place needs to compute its fragment.

    Attributes:
        owner: Whose memories.
        owner_seq: At which number of theirs.
        flow: ``""`` for a question's flow, or the name of an ``Each``.
        values: The fragment's inputs by name.
        disabled: Channels that are off.
        failures: Channels that have failed already.
        strict: A failing channel ends the work (as in an ``Each``) instead of being noted.
        past: Encoder generation of a state of the past; ``None`` for one that follows the newest.
    """

    owner: OwnerKey
    owner_seq: int
    flow: str
    values: Mapping[str, Any]
    disabled: frozenset[str]
    failures: Mapping[str, str]
    strict: bool = False
    past: int | None = None


def packed_question(question: Question) -> bytes:
    """Return the question's bytes; both ends run the same code."""
    return pickle.dumps(question, protocol=pickle.HIGHEST_PROTOCOL)


def question_text(asked: bytes) -> str | None:
    """Return the text to embed for a question, ``None`` for a blank one."""
    question: Question = pickle.loads(asked)
    text: str = question.values["plan"].query
    return text if text.strip() else None


def lexical_answer(store: Store, asked: bytes) -> bytes:
    """Return what an actor with the owners' texts finds; see :func:`_answer`."""
    return _answer(store, Place.LEXICAL, asked)


def graph_answer(store: Store, asked: bytes) -> bytes:
    """Return what an actor with the owners' graphs finds; see :func:`_answer`."""
    return _answer(store, Place.GRAPH, asked)


def vector_answer(store: Store, asked: bytes, *, vector: bytes | None = None) -> bytes:
    """Return what an actor with the owners' vectors finds; see :func:`_answer`.

    Args:
        store: The actor's store.
        asked: The question.
        vector: The question's vector as bytes (none for a blank one), where it does not hold it already.
    """
    if vector is None:
        return _answer(store, Place.VECTOR, asked)
    return _answer(store, Place.VECTOR, asked, embedding=np.frombuffer(vector, np.float32) if vector else None)


def _answer(store: Store, place: Place, asked: bytes, **made: Any) -> bytes:
    """Return the hits of the steps of ``place``, run on this process's view of the owner.

    Args:
        store: The process's own store.
        place: What the process serves.
        asked: :func:`packed_question`.
        made: Inputs that did not travel with the question.

    Raises:
        SnapshotGone: this process cannot show the owner at the question's number.
        Exception: a step's own, where no channel may fail.
    """
    question: Question = pickle.loads(asked)
    past = question.past is not None
    view = store.view_at(question.owner, question.owner_seq, past=past, generation=question.past)
    work = fragment(place, question.flow)
    values = {**question.values, **made, "failures": dict(question.failures)}
    seconds: dict[str, float] = {}
    run = call if question.strict else call_or_empty
    for step in work.steps:
        started = time.perf_counter()
        values[step.name] = run(step, values, {place: view}, question.disabled)
        seconds[step.name] = time.perf_counter() - started
    failed = {name: why for name, why in values["failures"].items() if name not in question.failures}
    return _packed(work, values, {"failures": failed, "seconds": seconds})


def outcome_of(answered: bytes, view: OwnerView, work: Fragment) -> Outcome:
    """Return what a process answered, its rows as references to this process's memories."""
    (size,) = _SIZE.unpack_from(answered, len(answered) - _SIZE.size)
    hits = pa.py_buffer(answered)[: len(answered) - _SIZE.size - size]
    head = json.loads(answered[len(hits) : -_SIZE.size])
    batch = pa.ipc.read_record_batch(hits, _HITS)
    rows, signals = batch.column(0).to_numpy(), batch.column(1)
    tables: list[pa.Table] = []
    start = 0
    for size in head["sizes"]:
        place, found = rows[start : start + size], signals.slice(start, size)
        tables.append(view.channel_of(place, found) if size else no_hits())
        start += size
    given = iter(tables)
    values: dict[str, Any] = {}
    for step, shape in zip(work.steps, head["shapes"], strict=True):
        values[step.name] = (
            next(given) if shape is None else Scans(*(tuple(next(given) for _ in range(count)) for count in shape))
        )
    return Outcome(values, head["failures"], head["seconds"])


def _packed(work: Fragment, values: Mapping[str, Any], said: dict[str, Any]) -> bytes:
    tables: list[pa.Table] = []
    shapes: list[list[int] | None] = []
    for step in work.steps:
        made = values[step.name]
        if isinstance(made, Scans):
            shapes.append([len(made.keywords), len(made.entities)])
            tables += [*made.keywords, *made.entities]
        else:
            shapes.append(None)
            tables.append(made)
    rows = [column(table, "node_id").indices.to_numpy() for table in tables if table.num_rows]
    signals = [column(table, "signal").to_numpy() for table in tables if table.num_rows]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(np.concatenate(rows) if rows else np.empty(0, np.int32), pa.int32()),
            pa.array(np.concatenate(signals) if signals else np.empty(0), pa.float64()),
        ],
        schema=_HITS,
    )
    head = json.dumps({**said, "sizes": [table.num_rows for table in tables], "shapes": shapes}).encode()
    # The hits come first, as Arrow wants them on a place divisible by eight.
    return b"".join([batch.serialize(), head, _SIZE.pack(len(head))])
