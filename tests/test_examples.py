"""The sample history and its questions hold what examples/README.md says."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
KINDS = {
    "single-hop",
    "multi-hop",
    "temporal",
    "current-state",
    "count",
    "entity",
    "preference",
    "cjk",
    "date-range",
    "open",
}


def lines(name):
    return [json.loads(line) for line in (EXAMPLES / name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def history():
    return lines("history.jsonl")


@pytest.fixture(scope="module")
def turns(history):
    position = Counter()
    found = {}
    for turn in history:
        session = turn["session_id"]
        found[f"{session}:{position[session]}"] = turn
        position[session] += 1
    return found


def test_every_turn_has_the_documented_fields(history):
    for turn in history:
        assert set(turn) == {"session_id", "event_time", "speaker", "text"}
        assert turn["text"].strip() == turn["text"] != ""
    assert {turn["speaker"] for turn in history} == {"Nora", "Teo"}


def test_size_and_span_are_those_of_the_readme(history):
    sessions = {turn["session_id"] for turn in history}
    assert (len(history), len(sessions)) == (624, 46)
    assert f"{len(history)} turns in {len(sessions)} sessions" in (EXAMPLES / "README.md").read_text("utf-8")
    assert history[0]["event_time"].startswith("2025-03")
    assert history[-1]["event_time"].startswith("2026-02")


def test_times_rise_strictly_and_sessions_are_not_interleaved(history):
    times = [datetime.fromisoformat(turn["event_time"]) for turn in history]
    assert all(time.utcoffset() == timedelta(0) for time in times)
    assert all(earlier < later for earlier, later in pairwise(times))
    starts = [turn["session_id"] for turn in history]
    order = [name for name, before in zip(starts, [None, *starts], strict=False) if name != before]
    assert order == sorted(set(starts))


def test_no_turn_is_said_twice(history):
    repeated = [text for text, count in Counter(turn["text"] for turn in history).items() if count > 1]
    assert repeated == []


@pytest.mark.parametrize(
    "script",
    ["[\u3040-\u30ff]", "[\u4e00-\u9fff]", "[\u0600-\u06ff]", "[\U0001f300-\U0001faff]", '"[A-Z][^"]+"'],
    ids=["kana", "han", "arabic", "emoji", "quoted title"],
)
def test_text_that_tokenizers_get_wrong_is_there(history, script):
    assert any(re.search(script, turn["text"]) for turn in history)


def test_there_is_one_question_of_each_kind():
    assert Counter(question["kind"] for question in lines("questions.jsonl")) == Counter(KINDS)


def test_questions_are_asked_after_the_history_ends(history):
    end = datetime.fromisoformat(history[-1]["event_time"])
    for question in lines("questions.jsonl"):
        assert datetime.fromisoformat(question["reference_time"]).astimezone(UTC) > end


def words(text):
    return {word for word in re.findall(r"[€\w][\w.,:]*\w|\w", text.lower()) if len(word) > 2}


@pytest.mark.parametrize("question", lines("questions.jsonl"), ids=lambda question: question["kind"])
def test_evidence_exists_and_speaks_of_the_answer(question, turns):
    assert len(question["evidence"]) == len(set(question["evidence"])) >= 1
    evidence = " ".join(turns[name]["text"] for name in question["evidence"])
    # Answers are short paraphrases: at least half of their longer words stand in the evidence.
    asked = words(question["answer"])
    assert len(asked & words(evidence)) * 2 >= len(asked), (sorted(asked), evidence)


def test_a_count_answer_is_the_number_of_things_it_lists():
    (question,) = [item for item in lines("questions.jsonl") if item["kind"] == "count"]
    number, listed = question["answer"].split(": ")
    assert int(number) == len(re.split(r", | and ", listed))
