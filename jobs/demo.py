"""The main job on real text: load a history, ask ten questions, show what an agent would get.

``python -m jobs.demo [--data DIR --conversation NAME] [--store DIR] [--settings FILE]``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from jobs.benchmark.locomo import read_conversations, read_questions
from prme_ray import Answer, Memory, Settings, load_settings
from prme_ray.launch import serve_until_stopped
from prme_ray.model.errors import InvalidSettings

__all__ = ["main"]

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_RUN = uuid.uuid4()
"""Requests of this run: asked in-process and on Ray under the same ids, and in the next run under others."""
_QUESTIONS = 10
_SHOWN = 5
_BUDGET = 600
_MARK = "loaded.json"
_WIDTH = 70
_TIMED = ("embedding", "vector", "lexical", "graph", "scored", "packed")


@dataclass(frozen=True, slots=True)
class History:
    """What the demo loads and asks."""

    owner: str
    items: list[dict[str, Any]]
    questions: list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, ask, print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jobs.demo", description="Load a history and ask ten questions.")
    parser.add_argument("--data", type=Path, help="folder with turns.jsonl and questions.jsonl (LoCoMo layout)")
    parser.add_argument("--conversation", help="conversation of --data; the first one when left out")
    parser.add_argument("--store", type=Path, default=Path("demo-store"), help="folder of the demo's stores")
    parser.add_argument("--budget", type=int, default=_BUDGET, help="token budget of a question")
    parser.add_argument("--settings", type=Path, help="TOML or JSON file of settings; PRME_ variables win over it")
    parser.add_argument(
        "--ray", action="store_true", help="ask the same on Ray in later runs too, not in the first alone"
    )
    parser.add_argument("--inline", action="store_true", help="never ask the same on Ray")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the history instead of asking")
    options = parser.parse_args(arguments)
    if options.conversation is not None and options.data is None:
        parser.error("--conversation needs --data")
    try:
        settings = load_settings(file=options.settings)
        history = _sample() if options.data is None else _locomo(options.data, options.conversation)
    except (OSError, ValueError, InvalidSettings) as error:
        parser.error(str(error))
    folder = _folder(options.store, history)
    path = (folder / "memory").absolute()
    with Memory.open(path, settings=settings) as memory:
        loaded = _load(memory, history, folder)
        answers = [] if options.serve else _show_all(memory, history, options.budget)
        same = _reproduced(memory, history, answers)
        health = memory.health()
    if options.serve:
        given = {"path": str(path), "settings": settings.model_dump(mode="json", exclude_defaults=True)}
        serve_until_stopped(given, host="127.0.0.1", port=options.serve)
        return 0
    # Starting Ray takes longer than all the rest of a later run, so that leaves it out unless asked.
    on_ray = (loaded or options.ray) and not options.inline
    agree = not on_ray or _agrees_on_ray(path, settings, history, options.budget, answers)
    counts = {name: sum(shard.log[name] for shard in health.shards) for name in ("event", "node", "edge", "vectors")}
    print(f"\nstore {folder}: healthy={health.healthy}, log {counts}")
    return 0 if health.healthy and agree and same else 1


def _show_all(memory: Memory, history: History, budget: int) -> list[Answer]:
    """Ask, print every answer, and return them."""
    answers = _ask(memory, history, budget)
    for number, (question, answer) in enumerate(zip(history.questions, answers, strict=False), 1):
        _show(number, question, answer)
    return answers


def _reproduced(memory: Memory, history: History, answers: list[Answer]) -> bool:
    """Run what was just asked again from its records, and print whether it came out the same."""
    if not answers:
        return True
    found = [memory.reproduce(answer.metadata.request_id, owner=history.owner) for answer in answers]
    same = sum(one.reproduced for one in found)
    print(
        f"\n{'=' * 100}\n{same} of {len(found)} retrievals came out the same when run again from their records: "
        "ids, order, scores, lineage, context"
    )
    return same == len(found)


def _ask(memory: Memory, history: History, budget: int) -> list[Answer]:
    """Return the answers to the first questions; request ids follow from the run and the question."""
    return [
        memory.retrieve(
            question["question"],
            owner=history.owner,
            reference_time=question["reference_time"],
            token_budget=budget,
            request_id=str(uuid.uuid5(_RUN, question["question"])),
        )
        for question in history.questions[:_QUESTIONS]
    ]


def _agrees_on_ray(path: Path, settings: Settings, history: History, budget: int, wanted: list[Answer]) -> bool:
    """Ask the same on Ray and print whether every byte of the answers is the same."""
    print(
        f"\n{'=' * 100}\nThe same questions on Ray: starting actors for embedding, vector, lexical, graph and writing"
    )
    with Memory.open(path, settings=settings, executor="ray") as memory:
        answers = _ask(memory, history, budget)
    same = sum(_bytes(one) == _bytes(other) for one, other in zip(answers, wanted, strict=True))
    inline, ray = (
        statistics.median(answer.metadata.timings_ms["total"] for answer in asked) for asked in (wanted, answers)
    )
    print(
        f"{same} of {len(wanted)} answers agree byte for byte (bundle, candidates, lineage, exclusions); "
        f"median {inline:.1f} ms in-process, {ray:.1f} ms on Ray"
    )
    return same == len(wanted)


def _bytes(answer: Answer) -> bytes:
    return json.dumps(answer.to_dict(timings=False), sort_keys=True).encode()


def _sample() -> History:
    turns = [json.loads(line) for line in (_EXAMPLES / "history.jsonl").read_text("utf-8").splitlines()]
    questions = [json.loads(line) for line in (_EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]
    items = [
        {
            "content": f"{turn['speaker']}: {turn['text']}",
            "session_id": turn["session_id"],
            "event_time": turn["event_time"],
        }
        for turn in turns
    ]
    return History("demo", items, questions)


def _locomo(data: Path, name: str | None) -> History:
    conversation = read_conversations(data, limit=1, only=name)[0]
    asked = read_questions(data / "questions.jsonl", [conversation])
    if not asked:
        raise ValueError(f"{data / 'questions.jsonl'} asks nothing about {conversation.name}")
    # Ten questions spread over the file, so that every category has a chance.
    step = max(1, len(asked) // _QUESTIONS)
    questions = [
        {
            "question": question.text,
            "kind": question.category,
            "reference_time": conversation.last_time,
            "answer": f"in {', '.join(question.evidence)}",
        }
        for question in asked[::step]
    ]
    return History(conversation.name, conversation.items, questions)


def _folder(root: Path, history: History) -> Path:
    # One store a history: changed text gets a new one, and a half-loaded one is loaded again.
    digest = hashlib.sha256(json.dumps(history.items, sort_keys=True).encode()).hexdigest()[:12]
    folder = root / f"{history.owner}-{digest}"
    if folder.exists() and not (folder / _MARK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _load(memory: Memory, history: History, folder: Path) -> bool:
    """Store the history unless the store has it; return whether it was stored now."""
    mark = folder / _MARK
    if mark.exists():
        print(f"{len(history.items)} memories of {history.owner!r} are in the store already (--ray: ask on Ray too)")
        return False
    started = time.perf_counter()
    bar = tqdm(history.items, desc="storing", unit="memory", file=sys.stderr)
    stored = memory.store_many(bar, owner=history.owner)
    seconds = time.perf_counter() - started
    mark.write_text(json.dumps({"memories": len(stored)}) + "\n", "utf-8")
    print(f"stored {len(stored)} memories of {history.owner!r} in {seconds:.1f} s ({len(stored) / seconds:.0f}/s)")
    return True


def _show(number: int, question: dict[str, Any], answer: Answer) -> None:
    bundle, metadata = answer.bundle, answer.metadata
    print(f"\n{'=' * 100}\n{number}. {question['question']}   [{question['kind']}; answer: {question['answer']}]")
    generated = ", ".join(f"{name} {count}" for name, count in metadata.candidates_generated.items())
    print(
        f"   intent {metadata.query_intent}; found: {generated}; "
        f"left out before packing: {metadata.candidates_filtered}"
    )
    print(f"   {'score':>8} {'cosine':>7} {'ranks':>9}  channels")
    for candidate in answer.results[:_SHOWN]:
        fusion = candidate.lineage.rank_fusion
        ranks = "-" if fusion is None else f"{fusion.semantic_rank or '-'}/{fusion.lexical_rank or '-'}"
        text = candidate.content if len(candidate.content) <= _WIDTH else candidate.content[: _WIDTH - 1] + "…"
        print(
            f"   {candidate.score:8.4f} {candidate.semantic_score:7.3f} {ranks:>9}  {'+'.join(candidate.paths)}  {text}"
        )
    print(f"\n{bundle.context}\n")
    timings = metadata.timings_ms
    parts = ", ".join(f"{name} {timings[name]:.1f}" for name in _TIMED)
    print(
        f"   {bundle.tokens_used} of {bundle.token_budget} tokens, {bundle.included_count} memories packed, "
        f"{len(bundle.excluded)} did not fit; {timings['total']:.1f} ms ({parts})"
    )


if __name__ == "__main__":
    sys.exit(main())
