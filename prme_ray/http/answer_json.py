"""An answer as JSON, straight from its Arrow tables (decision 18: everything the Python call returns).

A benchmark answer has 600 candidates of 55 values each, a megabyte of JSON; as pydantic records it
takes a hundred milliseconds to build and to dump. Here every column is made into pieces of JSON at
once and Arrow joins them (:mod:`prme_ray.http.pieces`). The bytes are those of ``orjson.dumps(answer.to_dict())``.
"""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from prme_ray.answer import Answer
from prme_ray.candidates import Candidates, Exclusions
from prme_ray.http.lineage_json import CLOSING, Lineages
from prme_ray.http.memory_pieces import MemoryPieces
from prme_ray.http.pieces import Pieces, choices, counts, ids, interleave, letters, numbers, raw, strings, together
from prme_ray.model.enums import path_names
from prme_ray.model.tables import bools, column, floats, ints, shorts, texts

__all__ = ["AnswerEncoder"]

_PATHS = raw([orjson.dumps(path_names(mask)) + b"," for mask in range(128)])
_TRUTHS = raw([b"false,", b"true,"])
_FLOATS = (
    "composite_score",
    "semantic_relevance",
    "semantic_score",
    "lexical_score",
    "graph_proximity",
    "reranker_score",
)
_NOT_PACKED = b'null,"token_cost":null,"in_context":false,"default_exclusion":'


class AnswerEncoder:
    """Encodes answers; keeps the constant part of memories that are answered again. Safe for threads.

    Args:
        memory_bytes: Most bytes of kept parts. An owner's are dropped when it writes.
    """

    def __init__(self, *, memory_bytes: int = 64 << 20) -> None:
        self._memories = MemoryPieces(memory_bytes)

    @property
    def kept_bytes(self) -> int:
        """Bytes of kept parts."""
        return self._memories.kept_bytes

    def encode(self, answer: Answer) -> bytes:
        """Return the answer as JSON bytes."""
        return b"".join(
            [
                b'{"bundle":',
                _model(answer.bundle),
                b',"results":[',
                self._candidates(answer.results),
                b'],"excluded":[',
                _exclusions(answer.excluded),
                b'],"cross_scope_hints":[',
                self._candidates(answer.cross_scope_hints),
                b'],"metadata":',
                _model(answer.metadata),
                b"}",
            ]
        )

    def _candidates(self, candidates: Candidates) -> bytes | memoryview:
        """Return candidates one behind the other, commas between."""
        if not len(candidates):
            return b""
        table = candidates.table
        lineages = Lineages(table)
        found = numbers({name: floats(table, name) for name in _FLOATS} | lineages.floats, closing=CLOSING)
        reasons = candidates.default_reasons
        return together(
            interleave(
                self._memories.of(table),
                found["composite_score"],
                b'"semantic_relevance":',
                found["semantic_relevance"],
                b'"paths":',
                choices(_PATHS, shorts(table, "paths")),
                b'"path_count":',
                counts(shorts(table, "path_count")),
                b'"semantic_score":',
                found["semantic_score"],
                b'"lexical_score":',
                found["lexical_score"],
                b'"graph_proximity":',
                found["graph_proximity"],
                b'"has_own_trace":',
                choices(_TRUTHS, bools(table, "has_own_trace").view(np.int8)),
                b'"lineage":',
                *lineages.pieces(found),
                b'"reranker_score":',
                found["reranker_score"],
                b'"session_context_link":',
                _links(table),
                b'"conflict_flag":',
                *_conflicts(table),
                b'"representation":',
                _packed(candidates),
                b"null}," if reasons is None else strings(pa.array(reasons, pa.string()), b"},"),
            )
        )


def _conflicts(table: pa.Table) -> list[Pieces]:
    if column(table, "contradicts_id").null_count == len(table):
        return [b'false,"contradicts_id":null,']
    others = texts(table, "contradicts_id")
    told = choices(_TRUTHS, np.array([other is not None for other in others], np.int8))
    return [told, b'"contradicts_id":', ids(others)]


def _packed(candidates: Candidates) -> Pieces:
    """Return how each candidate stands in the context: few do, and the others look alike."""
    levels, costs = candidates.levels, candidates.token_costs
    if not levels:
        return _NOT_PACKED
    pieces = [
        b'"%b","token_cost":%d,"in_context":true,"default_exclusion":' % (level.encode(), costs[node_id])
        for node_id, level in levels.items()
    ]
    places = pc.index_in(column(candidates.table, "node_id"), pa.array(levels, pa.string()))
    return choices(raw([*pieces, _NOT_PACKED]), places.fill_null(len(pieces)).to_numpy())


def _links(table: pa.Table) -> Pieces:
    triggers = column(table, "session_trigger_id")
    if triggers.null_count == len(triggers):
        return b"null,"
    return raw(
        [
            b"null," if trigger is None else b'{"trigger_id":%b,"offset":%d},' % (orjson.dumps(trigger), offset)
            for trigger, offset in zip(triggers.to_pylist(), ints(table, "session_offset").tolist(), strict=True)
        ]
    )


def _exclusions(excluded: Exclusions) -> bytes | memoryview:
    if not len(excluded):
        return b""
    table = excluded.table
    scores = {name: floats(table, name) for name in ("composite_score", "semantic_relevance")}
    found = numbers(scores, closing=("semantic_relevance",))
    return together(
        interleave(
            b'{"node_id":"',
            letters(column(table, "node_id")),
            b'","reason":',
            strings(column(table, "reason")),
            b'"composite_score":',
            found["composite_score"],
            b'"semantic_relevance":',
            found["semantic_relevance"],
            b",",
        )
    )


def _model(model: BaseModel) -> bytes:
    return model.__pydantic_serializer__.to_json(model)
