"""Stage 6: choose the records that fit the budget, best first, and write the context.

RFC §8, digest b §1. A record is packed whole at one representation level or not at all. The
tokenizer's count of the finished string is authoritative and checked before it is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.errors import PrmeRayError
from prme_ray.model.settings import PackingSettings
from prme_ray.model.settings.packing import MinFidelity
from prme_ray.model.tables import column, ints
from stages.costs import LineCosts
from stages.fill import Ladder, fill
from stages.fold import Folding
from stages.known_rows import KnownRows, RowFacts
from stages.layout import Layout
from stages.render import SECTIONS, has_references, section_codes
from stages.render_record import LEVELS, TEXT_LEVELS
from stages.tiers import GUARANTEED, INSTRUCTION, REQUIRED, Tiers, priority_order, tier_codes

__all__ = ["Packed", "levels_allowed", "pack"]


@dataclass(frozen=True, slots=True)
class Packed:
    """The packed context and an account of every record offered to it.

    Attributes:
        context: The exact string counted; no line break at its end.
        sections: Section -> node ids in line order; order of sections as in the context.
        included: Node ids in packing order.
        levels: Packed id -> representation level.
        token_costs: Packed id -> tokens of its line.
        excluded: Id -> reason, in the order decided; ``budget``, ``no_text``, ``folded`` or
            ``notice_did_not_fit``.
        tokens_used: Tokens of ``context``.
        budget_remaining: What is left of the budget after overhead and context.
        coverage_notice: The notices in the context; ``None`` for none.
        context_guidance: The guidance in the context; ``None`` where it was not asked for or did not fit.
        references: ``m1`` … -> id of packed records, where the format shows them.
        budget_overflow: Instructions, pins, tasks and intents left out for the budget (decision 9).
    """

    context: str
    sections: dict[str, list[str]]
    included: list[str]
    levels: dict[str, str]
    token_costs: dict[str, int]
    excluded: dict[str, str]
    tokens_used: int
    budget_remaining: int
    coverage_notice: str | None
    context_guidance: str | None
    references: dict[str, str]
    budget_overflow: list[str]


def pack(
    selected: pa.Table,
    *,
    packing: PackingSettings,
    token_budget: int,
    min_fidelity: MinFidelity,
    costs: LineCosts,
    notices: Sequence[str] = (),
    guidance: str | None = None,
    required: Sequence[str] = (),
    known: KnownRows | None = None,
) -> Packed:
    """Pack selected records into the token budget.

    Args:
        selected: ``SCORED`` rows in rank order; of rows with one id the first counts.
        packing: Format, ordering, folding, overhead.
        token_budget: Tokens the caller can spend, overhead included; 0 packs nothing.
        min_fidelity: Lowest representation level allowed.
        costs: Renders and counts lines.
        notices: Lines that must stand in the context; where they do not fit, nothing is packed.
        guidance: Line on how to read the records; added only where it fits beside them.
        required: Ids of selected rows that are tried before all others, in this order, and never folded away.
        known: Facts about the memories from earlier calls.

    Returns:
        The context and its account.

    Raises:
        PrmeRayError: the finished context is over the budget: the tokenizer does not count line by line.
    """
    table, rows, facts = _first_of_each(selected, KnownRows() if known is None else known)
    ids = list(map(facts.ids.__getitem__, rows.tolist()))
    id_rank = facts.ranks[rows]
    available = max(0, token_budget - packing.overhead_tokens)
    numbered = has_references(packing.context_format, citations=packing.context_citations)
    references = [f"m{place + 1}" for place in np.argsort(np.argsort(id_rank)).tolist()] if numbered else None
    levels = levels_allowed(packing.context_format, min_fidelity)
    ladder = Ladder(table, costs, levels=levels, references=references)
    links = _session_links(table, ids) if packing.session_context_packing else {}

    tiers = tier_codes(table, triggers={row: trigger for row, (trigger, _) in links.items()})
    blank = ladder.full.blank if levels[-1] in TEXT_LEVELS else np.zeros(len(ids), np.bool_)
    first = [ids.index(node_id) for node_id in dict.fromkeys(required)]
    tiers[first] = REQUIRED
    order = priority_order(
        table,
        tiers=tiers,
        ordering=packing.multipath_ordering,
        tokens=ladder.full.tokens,
        packable=~blank,
        id_rank=id_rank,
    ).tolist()
    order = first + order[len(first) :]

    layout = Layout(
        costs,
        available=available,
        context_format=packing.context_format,
        citations=packing.context_citations,
        notices=notices,
        sections=section_codes(table).tolist(),
        links=links if packing.session_context_packing == "adjacent" else {},
    )
    reasons: dict[int, str]
    if layout.notices_fit():
        # Plain notes have a source each: then nothing of this owner can be said twice.
        folds = packing.fold_repeated_text and packing.context_format == "reader" and facts.sources_shared
        folding = Folding(table) if folds else None
        reasons = fill(layout, ladder, order, blank.tolist(), folding or None, frozenset(first))
        guided = guidance is not None and layout.add_guidance(guidance)
        context, used = _checked(layout, costs, available)
    else:
        reasons = {row: "no_text" if blank[row] else "notice_did_not_fit" for row in order}
        guided, context, used = False, "", 0

    included = [ids[row] for row in layout.levels]
    return Packed(
        context=context,
        sections={SECTIONS[section]: [ids[row] for row in rows] for section, rows in layout.sections()},
        included=included,
        levels={ids[row]: level for row, level in layout.levels.items()},
        token_costs={ids[row]: layout.lines[row].tokens for row in layout.levels},
        excluded=dict(zip(map(ids.__getitem__, reasons), reasons.values(), strict=True)),
        tokens_used=used,
        budget_remaining=available - used,
        coverage_notice="\n".join(notices) if notices and context else None,
        context_guidance=guidance if guided else None,
        references={references[row]: ids[row] for row in sorted(layout.levels)} if references else {},
        budget_overflow=_overflow(order, ids, tiers, reasons),
    )


def levels_allowed(context_format: str, min_fidelity: str) -> tuple[str, ...]:
    """Return the levels that are tried, richest first (digest b §1.4).

    Reader lines exist only whole; ``prose`` equals ``full``.
    """
    if context_format == "reader" or min_fidelity == "prose":
        return LEVELS[:1]
    return LEVELS[: LEVELS.index(min_fidelity) + 1]


def _checked(layout: Layout, costs: LineCosts, available: int) -> tuple[str, int]:
    """Return the context and its authoritative token count."""
    context = layout.context()
    used = costs.count(context) if context else 0
    if used > available:
        raise PrmeRayError(detail=f"the packed context has {used} tokens, {available} are available; report this")
    return context, used


def _first_of_each(selected: pa.Table, known: KnownRows) -> tuple[pa.Table, npt.NDArray[np.int32], RowFacts]:
    """Return the first row of each id, and where the facts about each row are."""
    facts, rows = known.of(selected)
    ranks = facts.ranks[rows]
    if not len(rows) or np.bincount(ranks).max() == 1:
        return selected, rows, facts
    firsts = np.unique(ranks, return_index=True)[1]
    return _first_of_each(selected.take(pa.array(np.sort(firsts))), known)


def _overflow(order: list[int], ids: list[str], tiers: Tiers, reasons: dict[int, str]) -> list[str]:
    """Return the instructions, pins, tasks and intents that were left out for the budget, in order."""
    ranked_first = set(np.flatnonzero((tiers >= INSTRUCTION) & (tiers <= GUARANTEED)).tolist())
    if not ranked_first:
        return []
    left_out = ("budget", "notice_did_not_fit")
    return [ids[row] for row in order if row in ranked_first and reasons.get(row) in left_out]


def _session_links(table: pa.Table, ids: list[str]) -> dict[int, tuple[int, int]]:
    """Return row of a session neighbour -> (row of its trigger, offset), triggers still present only."""
    linked = column(table, "session_trigger_id")
    if linked.null_count == len(linked):
        return {}
    triggers = linked.to_pylist()
    row_of = {node_id: row for row, node_id in enumerate(ids)}
    offsets = ints(table, "session_offset").tolist()
    return {
        row: (row_of[trigger], offsets[row]) for row, trigger in enumerate(triggers) if trigger and trigger in row_of
    }
