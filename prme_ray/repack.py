"""Packs the candidates of an answer again, in a given order: to compare rankings under one budget."""

from __future__ import annotations

from collections.abc import Sequence

from prme_ray.answer import Answer
from prme_ray.model.settings import PackingSettings
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.line_cache import LineCache
from stages.pack import Packed, pack

__all__ = ["Repacker"]


class Repacker:
    """Packs strictly in the order given, with the product's lines and token counts.

    Args:
        packing: Line format, tokenizer and overhead; tiers and ordering do not count here.
    """

    def __init__(self, packing: PackingSettings) -> None:
        self._packing = packing.model_copy(update={"fold_repeated_text": False})
        self._counter = counter(packing.tokenizer)
        self._lines = LineCache()

    def pack(self, answer: Answer, order: Sequence[str], *, owner: str) -> Packed:
        """Return the context that holds the answer's results in ``order``, skipping what does not fit.

        Args:
            answer: Where the memories are taken from, and the budget.
            order: Ids of results, best first.
            owner: Whose answer it is; lines are cached by owner.
        """
        return pack(
            answer.results.table,
            packing=self._packing,
            token_budget=answer.bundle.token_budget,
            min_fidelity=self._packing.min_fidelity,
            costs=CachedLines(self._packing, self._counter, self._lines, owner=owner),
            required=list(order),
        )
