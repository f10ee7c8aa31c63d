"""Evidence context, opt-in: claims lead to the memories they were drawn from (digest a section 3.8).

::

    ranked list ─► groups of equal evidence, first top_k ─► their sources, from storage, filtered
                                                               │
    projection:    members leave, sources take their place ◄───┤
    augmentation:  sources stand beside the members        ◄───┘

A source takes the decayed score, and the lineage, of its group's best ranked member (the anchor).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from prme_ray.model.enums import Adjustment, NodeType, Path, code
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import codes, floats, refer, texts
from stages.columns import Rows, relevance
from stages.lineage import Expanded, Inheritance

__all__ = ["evidence_refs", "expand_evidence"]


@dataclass(frozen=True, slots=True)
class _Group:
    """Candidates with the same evidence: its ids, sorted, and the members' rows, the anchor first."""

    refs: tuple[str, ...]
    rows: tuple[int, ...]


_Found = tuple[_Group, list[int]]
"""A group and the rows of its sources."""


@dataclass(slots=True)
class _Offer:
    """The best that a source is offered: its row in ``sources``, the anchor's row, score and relevance."""

    source: int
    anchor: int
    score: float
    context: float


def evidence_refs(scored: pa.Table, packing: PackingSettings) -> list[str]:
    """Return the ids of the sources that :func:`expand_evidence` wants, sorted; none while it is off."""
    return sorted({ref for group in _groups(scored, packing) for ref in group.refs})


def expand_evidence(scored: pa.Table, sources: pa.Table, *, packing: PackingSettings) -> Expanded:
    """Project the best groups onto their sources, or put the sources beside them.

    Args:
        scored: SCORED, best first.
        sources: NODE, the memories named by :func:`evidence_refs` that the request may see: the storage
            checks owner, scope and lifecycle, :mod:`stages.filter` time, type and epistemic state.
        packing: Which of the two, how many groups and sources, the decay and who may lead a group.

    Returns:
        SCORED in rank order. A group without an eligible source stays as it is.
    """
    chosen = list(_with_sources(scored, sources, packing))
    if not chosen:
        return Expanded(scored)
    if packing.evidence_projection_top_k:
        return _project(scored, sources, chosen, packing.evidence_projection_score_decay)
    return _augment(scored, sources, chosen, packing.evidence_augmentation_score_decay)


def _groups(scored: pa.Table, packing: PackingSettings) -> list[_Group]:
    """Return the first groups by the rank of their first member."""
    top_k = packing.evidence_projection_top_k or packing.evidence_augmentation_top_k
    if not top_k:
        return []
    augments = packing.evidence_augmentation_top_k > 0
    skips_entities = augments and packing.evidence_augmentation_anchor_policy == "non_entity"
    kinds = codes(scored, "node_type")
    members: dict[str, list[int]] = {}
    for row, evidence in enumerate(texts(scored, "evidence")):
        if evidence and not (skips_entities and kinds[row] == code(NodeType.ENTITY)):
            members.setdefault(evidence, []).append(row)
    return [_Group(tuple(key.split(",")), tuple(rows)) for key, rows in list(members.items())[:top_k]]


def _with_sources(scored: pa.Table, sources: pa.Table, packing: PackingSettings) -> Iterator[_Found]:
    """Yield each group with the rows of its sources, by id; groups without are left out."""
    most = (
        packing.evidence_projection_max_sources
        if packing.evidence_projection_top_k
        else packing.evidence_augmentation_max_sources
    )
    row_of = {node_id: row for row, node_id in enumerate(texts(sources, "node_id"))}
    source_scopes = codes(sources, "scope")
    scopes = codes(scored, "scope")
    for group in _groups(scored, packing):
        found = [row_of[ref] for ref in group.refs if ref in row_of]
        found = [row for row in found if source_scopes[row] == scopes[group.rows[0]]][:most]
        if found:
            yield group, found


def _offers(scored: pa.Table, chosen: list[_Found], decay: float) -> list[_Offer]:
    """Return each source's best offer; of equal ones the better ranked anchor's."""
    composite = floats(scored, "composite_score")
    context = relevance(scored)
    offers: dict[int, _Offer] = {}
    for group, found in chosen:
        anchor = group.rows[0]
        score = float(composite[anchor]) * decay
        near = float(context[list(group.rows)].max())
        for source in found:
            before = offers.get(source)
            if before is None:
                offers[source] = _Offer(source, anchor, score, near)
                continue
            before.context = max(before.context, near)
            if score > before.score:
                before.anchor, before.score = anchor, score
    return list(offers.values())


def _project(scored: pa.Table, sources: pa.Table, chosen: list[_Found], decay: float) -> Expanded:
    """Replace members by sources; a source that is in the list already keeps its better record."""
    offers = _offers(scored, chosen, decay)
    ids = texts(scored, "node_id")
    present = _present(ids, sources, offers)
    composite = floats(scored, "composite_score")
    stays = [row >= 0 and composite[row] >= offer.score for row, offer in zip(present, offers, strict=True)]
    fresh = [offer for offer, stay in zip(offers, stays, strict=True) if not stay]
    state = Inheritance(
        scored,
        _all(sources),
        _rows(offer.source for offer in fresh),
        Path.EVIDENCE_CONTEXT,
    )

    own = relevance(scored)
    new = scored.num_rows + np.arange(len(fresh))
    target = iter(new.tolist())
    for row, offer, stay in zip(present, offers, stays, strict=True):
        # What the memory knew of its own relevance is kept, whichever of its records is.
        near = max(offer.context, own[row]) if row >= 0 else offer.context
        state.context[row if stay else next(target)] = near
    state.join(_rows(row for row, stay in zip(present, stays, strict=True) if stay), count=True)
    state.inherit(new, _rows(offer.anchor for offer in fresh), np.array([offer.score for offer in fresh]), decay)

    members = {row for group, _ in chosen for row in group.rows} | {row for row in present if row >= 0}
    gone = members - {row for row, stay in zip(present, stays, strict=True) if stay}
    keep = np.setdiff1d(np.arange(scored.num_rows + len(fresh)), _rows(sorted(gone)))
    found = state.finish(Adjustment.EVIDENCE_PROJECTION, keep=keep, always_sort=True)
    left = set(texts(found.table, "node_id"))
    return replace(
        found,
        added=tuple(node_id for node_id in found.added if node_id not in set(ids)),
        removed=tuple(node_id for node_id in ids if node_id not in left),
    )


def _augment(scored: pa.Table, sources: pa.Table, chosen: list[_Found], decay: float) -> Expanded:
    """Add the sources; one that is in the list already takes the score where it is better."""
    offers = _offers(scored, chosen, decay)
    present = _present(texts(scored, "node_id"), sources, offers)
    fresh = [offer for offer, row in zip(offers, present, strict=True) if row < 0]
    state = Inheritance(
        scored,
        _all(sources),
        _rows(offer.source for offer in fresh),
        Path.EVIDENCE_CONTEXT,
    )
    new = iter(range(scored.num_rows, scored.num_rows + len(fresh)))
    target = _rows(row if row >= 0 else next(new) for row in present)
    scores = np.array([offer.score for offer in offers])
    better = (scores > state.scores[target]) | (target >= scored.num_rows)
    state.context[target] = np.maximum(state.context[target], [offer.context for offer in offers])
    state.join(target, count=True)
    state.inherit(target[better], _rows(offer.anchor for offer in offers)[better], scores[better], decay)
    return state.finish(Adjustment.EVIDENCE_AUGMENTATION)


def _present(ids: list[str], sources: pa.Table, offers: list[_Offer]) -> list[int]:
    """Return the row in the list of each offer's source, -1 for none."""
    row_of = {node_id: row for row, node_id in enumerate(ids)}
    source_ids = texts(sources, "node_id")
    return [row_of.get(source_ids[offer.source], -1) for offer in offers]


def _rows(values: Iterable[int]) -> Rows:
    return np.array(list(values), dtype=np.int64)


def _all(sources: pa.Table) -> pa.DictionaryArray:
    return refer(sources, np.arange(sources.num_rows))
