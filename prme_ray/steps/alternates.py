"""Optional: other wordings of the question, searched beside it (digest a §7.6).

::

    merged ───────────────────────────────────────────────┐
    alternates ─┬─ names, embedding ─ channels ─ merge ─┬─ generated
                └─ the same for the next alternate      ─┘

An alternate is the request with other words: scopes, bounds, clock and channel limits (widened ones
included) are the question's own. Of its analysis only the names matter, as dates of a question never
filter, and it has no keyword or name scans. Pins do not depend on words, so the question's are used.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import pyarrow as pa

from prme_ray.model.protocols import Reformulator
from prme_ray.model.request import Request
from prme_ray.model.settings import Settings
from prme_ray.model.text import check_text
from prme_ray.steps import generate
from prme_ray.steps.values import Kept, Plan, Scans
from stages.entities import extract_entities
from stages.merge import append_new, merge, merge_max_signals
from storage.view import OwnerView

__all__ = ["add_alternates", "hydrate", "merge_channels", "plan_alternate", "reformulate"]

_LOG = logging.getLogger("prme_ray.retrieve")


def reformulate(ask: Reformulator, request: Request, settings: Settings) -> tuple[Request, ...]:
    """Return the request in other words; none when the option is off, the question blank or ``ask`` fails.

    Blank texts, repeats and echoes of the question are dropped; case and spacing make no difference.
    """
    chosen = settings.reformulation
    if not chosen.enabled or not request.query.strip():
        return ()
    try:
        given = ask(request.query, chosen.count)
        if isinstance(given, str):
            raise TypeError("a reformulator returns a sequence of texts, not one text")  # noqa: TRY301
        wordings = [check_text(text, "alternate").strip() for text in given]
    except Exception as error:
        # The question is searched all the same. What the exception says may quote it, so only the kind is logged.
        _LOG.warning("no alternate queries: the reformulator failed with %s", type(error).__name__)
        return ()
    seen = {"", _folded(request.query)}
    kept: list[Request] = []
    for text in wordings:
        if len(kept) < chosen.count and _folded(text) not in seen:
            seen.add(_folded(text))
            kept.append(dataclasses.replace(request, query=text))
    return tuple(kept)


def plan_alternate(alternate: Request, order: Plan) -> Plan:
    """Return the channels' orders for one alternate: the question's, with the names in these words."""
    names = tuple(entity.name for entity in extract_entities(alternate.query))
    return dataclasses.replace(order, query=alternate.query, keywords=(), names=names)


def hydrate(view: OwnerView, graph: pa.Table, vector: pa.Table, lexical: pa.Table, pinned: pa.Table) -> pa.Table:
    """Return the memories behind every id that one alternate's channels named."""
    return generate.hydrate(view, graph, vector, lexical, pinned, Scans())


def merge_channels(graph: pa.Table, vector: pa.Table, lexical: pa.Table, pinned: pa.Table, nodes: pa.Table) -> pa.Table:
    """Return one row a memory that one alternate found."""
    return merge(graph, vector, lexical, pinned, nodes=nodes)


def add_alternates(merged: Kept, passes: Sequence[pa.Table | Exception], settings: Settings) -> Kept:
    """Join what the alternates found to what the question found.

    The count ``REFORMULATION`` says how many memories only they found.

    Args:
        merged: Candidates of the question.
        passes: Candidates of each alternate, or why its search failed.
        settings: ``reformulation.merge`` says how.

    Raises:
        Exception: under ``max_signals``, the failure of the first search that failed: a maximum over some
            of the searches would depend on which. Under ``new_only`` such a search adds nothing.
    """
    if not passes:
        return merged
    failed = [outcome for outcome in passes if isinstance(outcome, Exception)]
    found = [outcome for outcome in passes if not isinstance(outcome, Exception)]
    if settings.reformulation.merge == "max_signals":
        if failed:
            raise failed[0]
        table = merge_max_signals(merged.table, found)
    else:
        table = append_new(merged.table, found)
    added = table.num_rows - merged.table.num_rows
    counts = {**merged.counts, "REFORMULATION": added} if added else merged.counts
    return Kept(table, counts=counts)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
