"""Reads the LoCoMo layout: ``turns.jsonl`` and a file of questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CATEGORIES", "Conversation", "Question", "read_conversations", "read_questions", "utc"]

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Categories that are asked; 5 is unanswerable by design."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: an owner. ``items`` are arguments of ``Memory.store``, in dialogue order."""

    name: str
    items: list[dict[str, Any]]
    turns: list[str]
    last_time: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the turns that answer it."""

    conversation: str
    text: str
    category: str
    evidence: tuple[str, ...]


def utc(local: str) -> str:
    """Return a zone-less session time as UTC: the data has no zones, and only differences matter."""
    return local if local.endswith("Z") else local + "Z"


def read_conversations(folder: Path, *, limit: int | None = None, only: str | None = None) -> list[Conversation]:
    """Return the conversations of ``folder/turns.jsonl`` in file order.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: ``only`` names no conversation.
    """
    turns: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(folder / "turns.jsonl"):
        turns.setdefault(row["conversation_id"], []).append(row)
    names = list(turns)
    if only is not None and only not in turns:
        raise ValueError(f"conversation {only!r} is not one of {', '.join(names)}")
    chosen = [only] if only is not None else names[:limit]
    return [_conversation(name, turns[name]) for name in chosen]


def read_questions(path: Path, conversations: list[Conversation]) -> list[Question]:
    """Return the answerable questions (categories 1-4 with evidence) of these conversations.

    Raises:
        ValueError: evidence names a turn that the conversation lacks.
    """
    known = {conversation.name: set(conversation.turns) for conversation in conversations}
    questions = []
    for row in _rows(path):
        name = row["conversation_id"]
        if name not in known or row["category"] not in CATEGORIES or not row["evidence"]:
            continue
        missing = set(row["evidence"]) - known[name]
        if missing:
            raise ValueError(f"{name}: question {row['question']!r} cites turns that are not there: {sorted(missing)}")
        questions.append(Question(name, row["question"], CATEGORIES[row["category"]], tuple(row["evidence"])))
    return questions


def _conversation(name: str, turns: list[dict[str, Any]]) -> Conversation:
    items = []
    for turn in turns:
        caption = f" [shared image: {turn['caption']}]" if turn.get("caption") else ""
        items.append(
            {
                "content": f"{turn['speaker']}: {turn['text']}{caption}",
                "session_id": turn["session_id"],
                "event_time": utc(turn["session_time"]),
            }
        )
    return Conversation(
        name, items, [turn["dia_id"] for turn in turns], utc(max(turn["session_time"] for turn in turns))
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
