"""Suite ``relevance``: does the evidence reach the context? Four arms over one store.

``full`` is the product with the settings given. The other arms are baselines with the same encoder, line format
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
from prme_ray.repack import Repacker

__all__ = ["ARMS", "arm_settings", "run_relevance"]

ARMS = ("full", "vector", "lexical", "rrf")

_PLAIN_SCORING: dict[str, Any] = {
    "rrf_recency_boost": None,
    "rrf_tie_break": None,
    "temporal_boost": 0.0,
    "current_update_multiplier": 1.0,
    "node_type_boost": {},
}
_PLAIN_PACKING: dict[str, Any] = {
    "session_context_window": 0,
    "episode_context_top_k": 0,
    "evidence_projection_top_k": 0,
    "evidence_augmentation_top_k": 0,
    "fold_repeated_text": False,
}
_OTHERS = {"vector": ("LEXICAL",), "lexical": ("VECTOR",), "rrf": ()}


def arm_settings(arm: str, settings: Settings) -> Settings:
    """Return the settings of an arm; a baseline keeps files, encoder and lines, every other signal is off."""
    if arm == "full":
        return settings
    return Settings.parse(
        {
            "scoring": _PLAIN_SCORING,
            "packing": {**settings.packing.model_dump(), **_PLAIN_PACKING},
            "encoder": settings.encoder,
            "storage": settings.storage,
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
    settings: Settings,
    arms: Sequence[str] = ARMS,
) -> dict[str, Any]:
    """Load the conversations, ask the questions in every arm and return the report.

    Args:
        conversations: One owner each.
        questions: Questions about them.
        budget: Token budget, the 100 tokens of overhead included.
        folder: Empty folder for the store.
        settings: Settings of the ``full`` arm; the baselines take encoder, files and lines from them.
        arms: Arms to run.
    """
    turn_of: dict[str, dict[str, str]] = {}
    with Memory.open(folder / "memory", settings=settings) as memory:
        for conversation in tqdm(conversations, desc="storing", unit="conversation"):
            stored = memory.store_many(conversation.items, owner=conversation.name)
            ids = [receipt.node_id for receipt in stored]
            turn_of[conversation.name] = dict(zip(ids, conversation.turns, strict=True))
    times = {conversation.name: conversation.last_time for conversation in conversations}
    report: dict[str, Any] = {"settings_fingerprint": settings.fingerprint(), "encoder": None, "budget": budget}
    report["arms"] = {}
    repacker = Repacker(settings.packing)
    for arm in arms:
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in CATEGORIES.values()}
        with Memory.open(folder / "memory", settings=arm_settings(arm, settings), read_only=True) as memory:
            for question in tqdm(questions, desc=f"asking {arm}", unit="question"):
                owner = question.conversation
                answer = memory.retrieve(question.text, owner=owner, reference_time=times[owner], token_budget=budget)
                report["encoder"] = answer.metadata.encoder
                packed, tokens = _packed(arm, answer, repacker, owner)
                names = turn_of[owner]
                rows[question.category].append(
                    evaluate(
                        [names[node] for node in answer.results.ids if node in names],
                        [names[node] for node in packed if node in names],
                        question.evidence,
                        tokens,
                    )
                )
        everything = [row for category in rows.values() for row in category]
        by_category = {name: mean_metrics(category) for name, category in rows.items()}
        report["arms"][arm] = {**mean_metrics(everything), "by_category": by_category}
    return report


def _packed(arm: str, answer: Answer, repacker: Repacker, owner: str) -> tuple[list[str], int]:
    if arm == "full":
        sections = answer.bundle.sections.values()
        return [name for section in sections for name in section], answer.bundle.tokens_used
    # The product's own lines and budget, but strictly best first: a baseline has no tiers.
    packed = repacker.pack(answer, answer.results.ids, owner=owner)
    return list(packed.included), packed.tokens_used
