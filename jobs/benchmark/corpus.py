"""Made-up chat lines for timing: seeded, about 20 words each, one session every 20 lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["lines", "questions"]

_PEOPLE = ("Mara", "Theo", "Ines", "Jonas", "Priya", "Callum")
_PLACES = ("Lisbon", "the harbour", "Kyoto", "the old mill", "Leeds", "the new office", "Oslo", "the lake house")
_THINGS = (
    "a blue bicycle", "the tax papers", "a sourdough starter", "two concert tickets", "the broken printer", "a tent",
    "an old piano", "the garden shed", "a birthday cake", "the train pass", "a box of letters", "running shoes",
)  # fmt: skip
_DOINGS = (
    "finally picked up", "lent me", "forgot about", "sold", "repaired", "talked for an hour about", "borrowed",
    "painted", "asked me to look after", "could not find", "gave away", "wants to replace",
)  # fmt: skip
_TAILS = (
    "because the rain would not stop all weekend", "and we laughed about it over a late dinner",
    "so next week we have to plan everything again", "which cost more than either of us expected",
    "before the meeting with the landlord on Friday", "while the neighbours were celebrating downstairs",
    "and I promised to send photographs tomorrow", "although the doctor had said to take it easy",
)  # fmt: skip
_ENDINGS = ("last year", "in the end", "with so little help", "despite the rain", "on the way home")


def lines(count: int, *, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Yield ``count`` arguments of ``Memory.store``."""
    chance = random.Random(seed)
    for number in range(count):
        speaker, other = chance.sample(_PEOPLE, 2)
        text = (
            f"{speaker}: {other} {chance.choice(_DOINGS)} {chance.choice(_THINGS)} in {chance.choice(_PLACES)} "
            f"{chance.choice(_TAILS)}, number {number}."
        )
        day, hour = divmod(number, 24)
        year, month, of_month = 2020 + day // 336, 1 + day % 336 // 28, 1 + day % 28
        yield {
            "content": text,
            "session_id": f"s{number // 20}",
            "event_time": f"{year}-{month:02d}-{of_month:02d}T{hour:02d}:00:00Z",
        }


def questions(count: int, *, seed: int = 11) -> list[str]:
    """Return ``count`` different questions of about twelve words; one in five speaks of a time.

    That is the share among LoCoMo's questions. It matters: parsing a date costs some milliseconds.
    """
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        who, thing, place = chance.choice(_PEOPLE), chance.choice(_THINGS), chance.choice(_PLACES)
        ask = chance.choice(("What did", "Why did", "Where did", "With whom did"))
        found[f"{ask} {who} do with {thing} in {place} {chance.choice(_ENDINGS)}?"] = None
    return list(found)
