"""Session context: the turns around the best hits (digest a section 3.5).

::

    ranked list ─► the first top_k rows that have a session ─► their neighbours, from storage
                                                                   │
    ranked list ◄── neighbours at the trigger's score × decay ◄────┘

A turn is often only understood with the turn before it, and a neighbour of a good hit is rarely found
by its own words. Triggers keep the scores they came with, so context does not feed on context.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import Adjustment, Path
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import codes, column, ids_at, ints, parts, present, texts
from stages.columns import Rows, places, relevance
from stages.lineage import Expanded, Inheritance

__all__ = ["expand_session", "session_triggers"]

_RANK_FUSION = 2
_TRIGGERS = pa.schema([pa.field("trigger_id", pa.string(), nullable=False)])


@dataclass(frozen=True, slots=True)
class _Offers:
    """What the triggers offer their neighbours: parallel arrays, by trigger rank, then offset.

    ``target`` is the neighbour's row (new memories after the known ones), ``origin`` the trigger's.
    """

    target: Rows
    origin: Rows
    decay: npt.NDArray[np.float64]
    offset: Rows


def session_triggers(scored: pa.Table, *, packing: PackingSettings) -> pa.Table:
    """Return the hits whose sessions are opened, in rank order: one column ``trigger_id``."""
    ids = _ids(scored, _trigger_rows(scored, packing))
    return pa.Table.from_arrays([pa.array(ids, pa.string())], schema=_TRIGGERS)


def expand_session(scored: pa.Table, windows: pa.Table, *, packing: PackingSettings) -> Expanded:
    """Bring in the neighbours of the triggers.

    A neighbour that is not in the list is added on SESSION_CONTEXT alone. One that is gains that path
    and takes the decayed score with the trigger's lineage where that is larger than its own. With
    ``session_context_packing`` set, joining counts as a path, and neighbours that are no triggers
    keep a link to their first trigger.

    Args:
        scored: SCORED, best first.
        windows: ``node`` (references; no memory twice in what they refer to), ``trigger_id`` and
            ``offset`` (turns from the trigger; 0 is ignored), in any order. Of eligible memories only:
            the storage checks owner, scope and lifecycle.
        packing: Window, number of triggers and decays.
    """
    triggers = _trigger_rows(scored, packing)
    if not len(triggers) or not windows.num_rows:
        return Expanded(scored)
    ranks = {name: place for place, name in enumerate(_ids(scored, triggers))}
    rank = np.array([ranks.get(name, -1) for name in texts(windows, "trigger_id")])
    offset = ints(windows, "offset")
    order = np.lexsort((offset, rank))
    order = order[(rank[order] >= 0) & (offset[order] != 0)]
    if not len(order):
        return Expanded(scored)
    target, new = _targets(column(windows, "node"), order, column(scored, "node"))
    origin = triggers[rank[order]]
    offers = _Offers(target, origin, _decays(scored, packing)[origin], offset[order])

    state = Inheritance(scored, column(windows, "node"), order[new], Path.SESSION_CONTEXT)
    counted = packing.session_context_packing is not None
    np.maximum.at(state.context, target, relevance(scored)[origin])
    state.join(target, count=counted)
    if counted:
        _link(state, offers, triggers, column(scored, "node_id"))
    _take_best(state, offers, known=scored.num_rows)
    return state.finish(Adjustment.SESSION_DECAY)


def _trigger_rows(scored: pa.Table, packing: PackingSettings) -> Rows:
    if packing.session_context_window <= 0:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(present(scored, "session_id")[: packing.session_context_top_k])


def _ids(scored: pa.Table, rows: Rows) -> list[str]:
    places, memories = parts(column(scored, "node"))
    return ids_at(memories, places[rows])


def _decays(scored: pa.Table, packing: PackingSettings) -> npt.NDArray[np.float64]:
    """Return the decay of each row's score as a trigger: fused scores may have their own."""
    plain = packing.session_context_score_decay
    fused = packing.session_context_rank_fusion_score_decay
    return np.where(codes(scored, "formula_version") == _RANK_FUSION, plain if fused is None else fused, plain)


def _targets(neighbours: pa.DictionaryArray, order: Rows, known: pa.DictionaryArray) -> tuple[Rows, Rows]:
    """Return each neighbour's row, new memories after the known ones, and where each new one is first seen.

    Args:
        neighbours: References to memories, none twice in what they refer to.
        order: Which of them are meant, in which order.
        known: References of the list.
    """
    target = places(neighbours, known)[order]
    unknown = np.flatnonzero(target < 0).tolist()
    memories = parts(neighbours)[0][order]
    rows: dict[int, int] = {}
    firsts: list[int] = []
    for place in unknown:  # few: most neighbours of good hits are candidates already
        memory = int(memories[place])
        if memory not in rows:
            rows[memory] = len(known) + len(rows)
            firsts.append(place)
        target[place] = rows[memory]
    return target, np.array(firsts, np.int64)


def _take_best(state: Inheritance, offers: _Offers, known: int) -> None:
    """Let each row take its largest offer where it beats its own score; of equal offers the first trigger's."""
    values = state.scores[offers.origin] * offers.decay
    best = np.full(len(state.scores), -np.inf)
    np.maximum.at(best, offers.target, values)
    beats = best > state.scores
    beats[known:] = True
    winners = np.flatnonzero((values == best[offers.target]) & beats[offers.target])[::-1]
    chosen = np.full(len(best), -1, dtype=np.int64)
    # Written back to front, so the first of equal offers is the one that stays.
    chosen[offers.target[winners]] = winners
    rows = np.flatnonzero(chosen >= 0)
    offer = chosen[rows]
    state.inherit(rows, offers.origin[offer], values[offer], offers.decay[offer])


def _link(state: Inheritance, offers: _Offers, triggers: Rows, node_ids: pa.Array) -> None:
    """Record the first trigger and the distance on neighbours that are no triggers themselves."""
    first = np.full(len(state.scores), -1, dtype=np.int64)
    first[offers.target[::-1]] = np.arange(len(offers.target) - 1, -1, -1)
    first[triggers] = -1
    unlinked = first < 0
    state.trigger_ids = node_ids.take(pa.array(offers.origin[first], mask=unlinked))
    state.offsets = pa.array(offers.offset[first].astype(np.int32), mask=unlinked)
