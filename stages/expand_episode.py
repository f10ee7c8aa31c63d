"""Episode context, opt-in: whole conversations rank against the question (digest a section 3.6).

::

    ranked list ─► group by (scope, session) ─► BM25 of the groups ─► best top_k episodes
                                                                        │ BM25 inside each
    ranked list ◄── best local_k records at the episode's best score × decay

A record that answers only together with its conversation is lifted to near the conversation's best.
Nothing is added: episodes are made of candidates.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from prme_ray.model.enums import Adjustment, Path, Scope, member
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import codes, column, floats, texts
from stages.columns import Rows, relevance
from stages.lineage import Expanded, Inheritance

__all__ = ["Episode", "bm25", "expand_episode", "rank_episodes", "terms"]

_K1 = 1.5
_B = 0.75
_WORD = re.compile(r"[^\W_]+")
_MIN_MEMBERS = 2


@dataclass(frozen=True, slots=True)
class Episode:
    """A conversation among the candidates: its BM25 score and its members' rows, best ranked first."""

    scope: Scope
    session_id: str
    score: float
    rows: tuple[int, ...]


def terms(text: str) -> list[str]:
    """Return the case-folded runs of Unicode letters and digits; underscores and punctuation split."""
    return _WORD.findall(text.casefold())


def bm25(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the Okapi BM25 score of each document (k1 = 1.5, b = 0.75), statistics over ``documents``.

    Args:
        query: Terms; repeats count once.
        documents: Terms of each document.
    """
    counts = [Counter(document) for document in documents]
    lengths = [len(document) for document in documents]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(documents)
    for term in dict.fromkeys(query):
        holders = [place for place, found in enumerate(counts) if term in found]
        idf = math.log(1.0 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
        for place in holders:
            frequency = counts[place][term]
            norm = _K1 * (1.0 - _B + _B * lengths[place] / mean)
            scores[place] += idf * frequency * (_K1 + 1.0) / (frequency + norm)
    return scores


def rank_episodes(query: str, scored: pa.Table) -> list[Episode]:
    """Return every conversation with at least two candidates, best BM25 first, then by scope and session."""
    return _rank(terms(query), scored, [terms(text) for text in texts(scored, "content")])


def expand_episode(query: str, scored: pa.Table, *, packing: PackingSettings) -> Expanded:
    """Lift the best records of the best episodes.

    Each gains EPISODE_CONTEXT, which counts as a path, and the score of the episode's best record times
    the decay where that is larger than its own, with that record's lineage.

    Args:
        query: The question.
        scored: SCORED, best first.
        packing: Numbers of episodes and of records, and the decay.
    """
    if not packing.episode_context_top_k:
        return Expanded(scored)
    words = terms(query)
    documents = [terms(text) for text in texts(scored, "content")]
    episodes = [episode for episode in _rank(words, scored, documents) if episode.score > 0]
    if not episodes:
        return Expanded(scored)
    state = Inheritance(scored, column(scored, "node"), np.empty(0, dtype=np.int64), Path.EPISODE_CONTEXT)
    ids = texts(scored, "node_id")
    composite = floats(scored, "composite_score")
    context = relevance(scored)
    for episode in episodes[: packing.episode_context_top_k]:
        anchor = min(episode.rows, key=lambda row: (-composite[row], ids[row]))
        local = dict(zip(episode.rows, bm25(words, [documents[row] for row in episode.rows]), strict=True))
        best = sorted(episode.rows, key=lambda row: (-local[row], -composite[row], ids[row]))
        rows: Rows = np.array(best[: packing.episode_context_local_k])
        state.join(rows, count=True)
        state.context[rows] = np.maximum(state.context[rows], context[anchor])
        offer = float(composite[anchor] * packing.episode_context_score_decay)
        rows = rows[offer > composite[rows]]
        state.inherit(rows, np.full(len(rows), anchor), np.full(len(rows), offer), packing.episode_context_score_decay)
    return state.finish(Adjustment.EPISODE_DECAY)


def _rank(words: list[str], scored: pa.Table, documents: list[list[str]]) -> list[Episode]:
    groups: dict[tuple[Scope, str], list[int]] = {}
    scopes = codes(scored, "scope").tolist()
    for row, (scope, session_id) in enumerate(zip(scopes, texts(scored, "session_id"), strict=True)):
        if session_id is not None:
            groups.setdefault((member(Scope, scope), session_id), []).append(row)
    groups = {key: rows for key, rows in groups.items() if len(rows) >= _MIN_MEMBERS}
    scores = bm25(words, [[term for row in rows for term in documents[row]] for rows in groups.values()])
    episodes = [Episode(*key, score, tuple(rows)) for (key, rows), score in zip(groups.items(), scores, strict=True)]
    return sorted(episodes, key=lambda episode: (-episode.score, str(episode.scope), episode.session_id))
