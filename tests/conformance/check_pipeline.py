"""Golden file ``pipeline``: whole requests through the product's flow, over fixed backend answers.

The real steps run in the real executor; only the owner's view is replaced, by :class:`GivenView`,
which answers from the case by the rules of the reference's backends (digest a section 3). Our own
storage is stricter (decisions 5, 9 and 11) and has its own tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.answer import Answer, AnswerContext, build_answer
from prme_ray.executors.inline import InlineExecutor
from prme_ray.model.receipts import version_for
from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import channel, records, refer, take
from prme_ray.pipeline import Place
from prme_ray.records.encode import ranking_policy
from prme_ray.steps.values import Tools
from prme_ray.tokens import counter
from stages.line_cache import LineCache
from storage.records import Filters
from storage.view import SESSION_WINDOW
from tests.conformance.tables import node, nodes_table, result, time

_ACTIVE = ("tentative", "stable", "contested")
_PROXIMITY = (1.0, 0.7, 0.4)
_SEEDS = 100
_RERANK = ("policy", "prior_weight", "top_k")


@dataclass(frozen=True, eq=False)
class GivenMask:
    """Which memories of the case a request may see by owner, lifecycle and scope."""

    rows: npt.NDArray[np.bool_]
    filters: Filters


class GivenEncoder:
    """Encodes every question alike: the case says what the vector search answers."""

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return a vector that nobody looks at."""
        return np.ones(1, np.float32)


class GivenCrossEncoder:
    """Scores every text as the case says."""

    name, version = "given", "1"

    def __init__(self, scores: dict[str, float]) -> None:
        self._scores = scores

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the given score of each text."""
        return [self._scores[text] for text in texts]


class GivenView:
    """Answers like an ``OwnerView``, from a case's ``given``."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._nodes = [node(item) for item in given["nodes"]]
        self._table = nodes_table(given["nodes"])
        self._row = {item.id: row for row, item in enumerate(self._nodes)}

    def eligible(self, filters: Filters) -> GivenMask:
        """Return the memories of the owner that are active and in scope; the stages check times again."""
        rows = [
            item.lifecycle_state in _ACTIVE and (filters.scopes is None or item.scope in filters.scopes)
            for item in self._nodes
        ]
        return GivenMask(np.array(rows, bool), filters)

    def vector(self, query: npt.NDArray[np.float32], *, k: int, eligible: GivenMask) -> pa.Table:
        """Return the given hits in scope, cut at ``k``; fail where the case says so."""
        if self._given["vector_failure"] is not None:
            raise ConnectionError("the case's vector backend is down")
        return self._hits(self._given["vector"], "similarity", k, eligible)

    def has_words_of(self, text: str, *, question: str) -> bool:
        """Return false: the hits of a text are given, and say nothing about other texts."""
        return False

    def lexical(self, query: str, *, k: int, eligible: GivenMask) -> pa.Table:
        """Return the hits given for this very text, in scope, cut at ``k``."""
        return self._hits(self._given["lexical"].get(query, []), "bm25", k, eligible)

    def graph(
        self,
        names: Sequence[str],
        *,
        hops: int,
        k: int,
        min_confidence: float,
        eligible: GivenMask,
        at: datetime | None = None,
    ) -> pa.Table:
        """Return what the given edges reach from entities that hold a name (section 3.2)."""
        wanted = [name.lower() for name in names]
        seeds = [
            row
            for row in np.flatnonzero(eligible.rows).tolist()
            if self._nodes[row].node_type == "entity"
            and any(name in self._nodes[row].content.lower() for name in wanted)
        ]
        seeds.sort(key=lambda row: (-self._nodes[row].created_at.timestamp(), self._nodes[row].id))
        best: dict[int, float] = {}
        for seed in seeds[:_SEEDS]:
            for row, proximity in self._reached(seed, hops):
                best[row] = max(best.get(row, 0.0), proximity)
        found = [row for row in best if eligible.rows[row] and self._valid(row, at)]
        found.sort(
            key=lambda row: (
                -self._nodes[row].confidence,
                -self._nodes[row].created_at.timestamp(),
                self._nodes[row].id,
            )
        )
        return self._channel(found[:k], [best[row] for row in found[:k]])

    def pinned(self, *, limit: int, eligible: GivenMask) -> pa.Table:
        """Return memories of full salience, then tasks, newest first (section 3.10)."""
        live = [row for row in np.flatnonzero(eligible.rows) if self._nodes[row].lifecycle_state != "contested"]
        live.sort(key=lambda row: (-self._nodes[row].created_at.timestamp(), self._nodes[row].id))
        salient = [row for row in live if self._nodes[row].salience >= 1.0][:limit]
        tasks = [row for row in live if self._nodes[row].node_type == "task"][:limit]
        rows = list(dict.fromkeys(salient + tasks))
        return self._channel(rows, [1.0] * len(rows))

    def holding(self, columns: Sequence[pa.DictionaryArray]) -> pa.Table:
        """Return all memories of the case."""
        return self._table

    def hydrate(self, ids: Any) -> pa.Table:
        """Return the memories of these ids, unknown ones left out."""
        return take(self._table, self.rows(ids))

    def rows(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the rows of these ids, unknown ones left out."""
        return np.array([self._row[name] for name in ids.to_pylist() if name in self._row], np.int64)

    def session_windows(self, triggers: pa.Table, *, window: int, eligible: GivenMask) -> pa.Table:
        """Return the turns around each trigger by (creation, id) (section 3.5)."""
        rows: list[int] = []
        names: list[str] = []
        offsets: list[int] = []
        for name in triggers.column("trigger_id").to_pylist():
            trigger = self._nodes[self._row[name]]
            turns = [
                item
                for item, seen in zip(self._nodes, eligible.rows.tolist(), strict=True)
                if seen and (item.session_id, item.scope) == (trigger.session_id, trigger.scope)
            ]
            turns.sort(key=lambda item: (item.created_at, item.id))
            here = turns.index(trigger)
            for place, turn in enumerate(turns):
                if 0 < abs(place - here) <= window:
                    rows.append(self._row[turn.id])
                    names.append(name)
                    offsets.append(place - here)
        columns = [refer(self._table, np.array(rows, np.int64)), pa.array(names, pa.string())]
        return pa.Table.from_arrays([*columns, pa.array(offsets, pa.int32())], schema=SESSION_WINDOW)

    def contradictions(self, ids: Sequence[str]) -> dict[str, str]:
        """Return nothing: the given edges have no type."""
        return {}

    def entity_types(self, names: Sequence[str], *, eligible: GivenMask) -> dict[str, str]:
        """Return nothing: the given entities say no type."""
        return {}

    def _reached(self, seed: int, hops: int) -> list[tuple[int, float]]:
        """Return each row within ``hops`` edges of a seed, the seed left out, and its proximity."""
        pairs = [(self._row[one], self._row[other]) for one, other in self._given["edges"]]
        distance = {seed: 0}
        for hop in range(1, hops + 1):
            border = {row for row, far in distance.items() if far == hop - 1}
            for one, other in pairs + [(other, one) for one, other in pairs]:
                if one in border:
                    distance.setdefault(other, hop)
        return [(row, _PROXIMITY[far - 1]) for row, far in distance.items() if far]

    def _valid(self, row: int, at: datetime | None) -> bool:
        item = self._nodes[row]
        return at is None or (item.valid_from <= at and (item.valid_to is None or at < item.valid_to))

    def _hits(self, given: list[dict[str, Any]], signal: str, k: int, eligible: GivenMask) -> pa.Table:
        scopes = eligible.filters.scopes
        hits = [hit for hit in given if scopes is None or hit["scope"] in scopes][:k]
        return channel([hit["node_id"] for hit in hits], [hit[signal] for hit in hits])

    def _channel(self, rows: Sequence[int], signals: list[float]) -> pa.Table:
        return channel([self._nodes[row].id for row in rows], signals)


@cache
def _tools(encoding: str) -> Tools:
    return Tools(counter(encoding), LineCache())


def answer(given: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
    """Run a case's request through the product's flow; return the answer and what its receipt says of itself."""
    reranker = given.get("reranker")
    settings = Settings.parse(
        {
            "scoring": given["weights"],
            "packing": given["packing"],
            "query_intent_order": given["intent_order"],
            "rerank": {"enabled": True, **{name: reranker[name] for name in _RERANK}} if reranker else {},
        }
    )
    arguments = {name: value for name, value in given["args"].items() if name != "mode"}
    request = make_request(
        given["query"],
        request_id="00000000-0000-4000-8000-000000000000",
        tenant="golden",
        owner=given["user_id"],
        now=time(given["reference_time"]),
        settings=settings,
        retrieval_mode=given["args"]["mode"],
        **arguments,
    )
    # The store finds rows of another encoder before the flow starts.
    mismatch = given["vector_failure"] == "embedding_mismatch"
    failures = {"VECTOR": "embedding_mismatch"} if mismatch else {}
    view = GivenView(given)
    run = InlineExecutor().run(
        {
            "request": request,
            "settings": settings,
            "tools": _tools(settings.packing.tokenizer),
            "failures": failures,
        },
        view=view,
        resources={
            Place.EMBEDDER: GivenEncoder(),
            Place.RERANKER: GivenCrossEncoder(reranker["scores_by_content"]) if reranker else None,
        },
    )
    context = AnswerContext(
        snapshot=0,
        encoder="given",
        owner_known=True,
        owner_memories=len(given["nodes"]),
        fingerprint="",
        scoring_version="",
        embedding_mismatch=mismatch,
    )
    found = build_answer(request, settings, run.values, context=context, receipt_persisted=False, timings_ms={})
    assigned = settings.rerank.enabled and settings.rerank.policy != "legacy" and bool(len(run.values["neural"]))
    return found, {
        "ranking_policy": ranking_policy(run.values),
        "receipt_schema_version": version_for(
            request.scoring,
            request.packing,
            rank_assignment=assigned,
            min_score_skipped=run.values["selection"].min_score_skipped,
        ),
    }


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case and put the answer in golden form."""
    found, receipt = answer(case["given"])
    metadata = found.metadata
    coverage = metadata.aggregation_coverage
    return {
        "results": [result(row) for row in records(found.results.table)],
        "excluded": [{"id": row["node_id"], **row} for row in found.excluded.table.to_pylist()],
        "cross_scope_hints": [{"id": row["node_id"], **row} for row in records(found.cross_scope_hints.table)],
        "candidates_generated": metadata.candidates_generated,
        "candidates_filtered": metadata.candidates_filtered,
        "backend_failures": metadata.backend_failures,
        "embedding_mismatch": metadata.embedding_mismatch,
        "min_score_skipped": metadata.min_score_skipped,
        "aggregation": None
        if coverage is None
        else {"candidate_count": coverage.candidate_count, "selected_count": coverage.selected_count},
        **receipt,
    }
