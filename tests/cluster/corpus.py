"""A store with owners in every shard group, and questions of every kind about them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from prme_ray import Memory

OWNERS = [f"owner-{number}" for number in range(8)]
NOW = "2026-06-01T12:00:00Z"
_PEOPLE = ["Caroline", "Mr. Okafor", "Zoë", "王芳", "Dana"]
_THINGS = ["cat called Oscar", "house in Lisbon", "red bicycle", "job at the bakery", "猫和狗", "violin 🎻"]
_SCOPES = ["personal", "project", "organisation"]


def fill(memory: Memory, *, seed: int = 7, memories: int = 40) -> None:
    """Store the corpus."""
    chance = random.Random(seed)
    for owner in OWNERS:
        items = [
            {
                "content": f"{chance.choice(_PEOPLE)}: I have a {chance.choice(_THINGS)} since day {number}.",
                "session_id": f"s{number // 8}",
                "event_time": f"2026-0{1 + number % 5}-{1 + number % 27:02d}T08:00:00Z",
                "scope": _SCOPES[number % 2],
            }
            for number in range(memories)
        ]
        stored = memory.store_many(items, owner=owner)
        memory.store_node("Always answer in English.", owner=owner, node_type="instruction", pinned=True)
        task = memory.store_node("Buy food for Oscar.", owner=owner, node_type="task", lifecycle_state="stable")
        memory.store_edge(stored[0].node_id, task.node_id, "relates_to", owner=owner, confidence=0.9)


def questions(count: int, *, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield questions with their arguments; equal seeds give equal questions and request ids."""
    chance = random.Random(seed)
    for number in range(count):
        query = chance.choice(
            [
                f"What does {chance.choice(_PEOPLE)} have?",
                f"How many times did {chance.choice(_PEOPLE)} mention the {chance.choice(_THINGS)}?",
                "When did Caroline move to Lisbon last month?",
                "猫和狗",
                'C++ AND ( "',
                "",
                f"{chance.choice(_THINGS)} day {number}",
            ]
        )
        options: dict[str, Any] = {
            "owner": chance.choice([*OWNERS, "nobody"]),
            "reference_time": NOW,
            "request_id": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
            "token_budget": chance.choice([64, 512, 4096]),
        }
        if chance.random() < 0.3:
            options["scope"] = chance.choice(_SCOPES)
        if chance.random() < 0.2:
            options["retrieval_mode"] = chance.choice(["explicit", "audit"])
        if chance.random() < 0.2:
            options["limit"] = chance.randrange(5)
        if chance.random() < 0.2:
            options["event_time_from"] = "2026-02-10T00:00:00Z"
        if chance.random() < 0.2:
            options["min_score"] = 0.3
        yield query, options


def answers(memory: Memory, count: int, *, seed: int) -> list[bytes]:
    """Return the answers as bytes, timings left out."""
    return [
        orjson.dumps(memory.retrieve(query, **options).to_dict(timings=False))
        for query, options in questions(count, seed=seed)
    ]


def make(path: Path) -> Path:
    """Return a folder with the corpus in it."""
    with Memory.open(path) as memory:
        fill(memory)
    return path
