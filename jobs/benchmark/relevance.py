"""Suite ``relevance``: does the evidence reach the context? Four arms over one store.

``full`` is the product as it is. The other arms are baselines with the same encoder, line format
and budget: cosine alone, BM25 alone, and plain reciprocal rank fusion of the two (k = 60), each
packed in rank order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from jobs.benchmark.locomo import CATEGORIES, Conversation, Question
from jobs.benchmark.metrics import evaluate, mean_metrics
from prme_ray import Answer, Memory, Settings
from prme_ray.model.enums import EpistemicType
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.line_cache import LineCache
from stages.pack import pack

__all__ = ["ARMS", "arm_settings", "run_relevance"]

ARMS = ("full", "vector", "lexical", "rrf")

_PLAIN_SCORING = {
    "rrf_recency_boost": None,
    "rrf_tie_break": None,
    "temporal_boost": 0.0,
    "current_update_multiplier": 1.0,
    "node_type_boost": {},
}
_OTHERS = {"vector": ("LEXICAL",), "lexical": ("VECTOR",), "rrf": ()}


def arm_settings(arm: str) -> Settings:
    """Return the settings of an arm; a baseline has every other signal switched off."""
    if arm == "full":
        return Settings()
    return Settings.parse(
        {
            "scoring": _PLAIN_SCORING,
            "packing": {"session_context_window": 0, "fold_repeated_text": False},
            "disabled_channels": ("GRAPH", "PINNED", *_OTHERS[arm]),
            "epistemic_weights": dict.fromkeys(EpistemicType, 1.0),
            "log_retrievals": False,
        }
    )


def run_relevance(
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    *,
    budget: int,
    folder: Path,
    arms: Sequence[str] = ARMS,
) -> dict[str, Any]:
    """Load the conversations, ask the questions in every arm and return the report.

    Args:
        conversations: One owner each.
        questions: Questions about them.
        budget: Token budget, the 100 tokens of overhead included.
        folder: Empty folder for the store.
        arms: Arms to run.
    """
    turn_of: dict[str, dict[str, str]] = {}
    with Memory.open(folder / "memory") as memory:
        for conversation in tqdm(conversations, desc="storing", unit="conversation"):
            stored = memory.store_many(conversation.items, owner=conversation.name)
            ids = [receipt.node_id for receipt in stored]
            turn_of[conversation.name] = dict(zip(ids, conversation.turns, strict=True))
    times = {conversation.name: conversation.last_time for conversation in conversations}
    report: dict[str, Any] = {"settings_fingerprint": Settings().fingerprint(), "encoder": None, "budget": budget}
    report["arms"] = {}
    for arm in arms:
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in CATEGORIES.values()}
        with Memory.open(folder / "memory", settings=arm_settings(arm), read_only=True) as memory:
            for question in tqdm(questions, desc=f"asking {arm}", unit="question"):
                answer = memory.retrieve(
                    question.text,
                    owner=question.conversation,
                    reference_time=times[question.conversation],
                    token_budget=budget,
                )
                report["encoder"] = answer.metadata.encoder
                rows[question.category].append(_judge(arm, answer, question, turn_of[question.conversation]))
        everything = [row for category in rows.values() for row in category]
        by_category = {name: mean_metrics(category) for name, category in rows.items()}
        report["arms"][arm] = {**mean_metrics(everything), "by_category": by_category}
    return report


def _judge(arm: str, answer: Answer, question: Question, turn_of: dict[str, str]) -> dict[str, float]:
    ranked = answer.results.ids
    if arm == "full":
        packed = [name for section in answer.bundle.sections.values() for name in section]
        tokens = answer.bundle.tokens_used
    else:
        packed, tokens = _pack_in_order(answer, ranked)
    return evaluate(
        [turn_of[name] for name in ranked if name in turn_of],
        [turn_of[name] for name in packed if name in turn_of],
        question.evidence,
        tokens,
    )


_LINES = LineCache()


def _pack_in_order(answer: Answer, ranked: list[str]) -> tuple[list[str], int]:
    # The product's own lines and budget, but strictly best first: a baseline has no tiers.
    settings = arm_settings("rrf").packing
    packed = pack(
        answer.results.table,
        packing=settings,
        token_budget=answer.bundle.token_budget,
        min_fidelity=settings.min_fidelity,
        costs=CachedLines(settings, counter(settings.tokenizer), _LINES, owner="benchmark"),
        required=ranked,
    )
    return list(packed.included), packed.tokens_used
