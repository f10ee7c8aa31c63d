import pytest

from tests.stages.packing_cases import memory, node_id, numbers, packed

SOURCE, OTHER = [node_id(900)], [node_id(901)]
TIME = "2024-02-01T10:00:00Z"


def folded(*memories, **settings) -> list[int]:
    found = packed(*memories, **settings)
    return numbers([value for value, reason in found.excluded.items() if reason == "folded"])


def fact(number: int, content: str, score: float, **fields):
    return memory(number, content, score, **({"evidence_refs": SOURCE, "event_time": TIME} | fields))


def test_the_longer_record_replaces_the_fact_it_contains() -> None:
    """Golden example 13: the fact is packed first and taken out again."""
    short = fact(1, "Dana lives in Denver.", 0.9, node_type="fact")
    long = fact(2, "At lunch: Dana lives in Denver. She likes it.", 0.8)
    found = packed(short, long)
    assert numbers(found.included) == [2]
    assert found.excluded == {node_id(1): "folded"}
    assert "Dana lives in Denver." in found.context
    assert folded(short, long, fold_repeated_text=False) == []
    assert folded(short, long, context_format="auditable") == []


def test_a_record_already_said_is_not_packed() -> None:
    assert folded(fact(1, "We met Anna in May.", 0.9), fact(2, " met Anna ", 0.8)) == [2]


@pytest.mark.parametrize(
    "difference",
    [
        {"evidence_refs": OTHER},
        {"evidence_refs": []},
        {"event_time": "2024-02-02T10:00:00Z"},
        {"lifecycle_state": "contested"},
        {"epistemic_type": "inferred"},
        {"valid_from": TIME, "valid_to": "2024-03-01T00:00:00Z"},
        {"metadata": {"prme_speaker_v1": "Anna"}},
        {"content": "met anna"},
    ],
)
def test_what_would_be_lost_keeps_a_record(difference) -> None:
    content = difference.pop("content", "met Anna")
    assert folded(fact(1, "We met Anna in May.", 0.9), fact(2, content, 0.8, **difference)) == []


def test_a_record_without_a_time_of_its_own_folds() -> None:
    assert folded(fact(1, "We met Anna.", 0.9), fact(2, "met Anna", 0.8, event_time=None)) == [2]


def test_one_shared_source_of_several_is_enough() -> None:
    assert folded(fact(1, "We met Anna.", 0.9, evidence_refs=[*OTHER, *SOURCE]), fact(2, "met Anna", 0.8)) == [2]


def test_equal_texts_keep_the_first() -> None:
    assert folded(fact(1, "We met.", 0.5), fact(2, "We met.", 0.5), fact(3, "We met.", 0.5)) == [2, 3]


def test_members_of_an_adjacent_window_stay() -> None:
    rows = [
        fact(1, "met Anna", 0.9, paths=["VECTOR", "LEXICAL"]),
        fact(2, "We met Anna.", 0.3, paths=["SESSION_CONTEXT"], link=(1, 1)),
    ]
    assert folded(*rows, session_context_packing="adjacent") == []
    assert folded(*rows, session_context_packing="trigger_tier") == [1]


def test_a_folded_record_frees_its_tokens() -> None:
    rows = [
        fact(1, "Dana lives in Denver now and likes it", 0.9),
        fact(2, "Dana lives in Denver now and likes it.", 0.8),
    ]
    alone = packed(rows[1], overhead_tokens=0)
    both = packed(*rows, overhead_tokens=0)
    assert both.context == alone.context
    assert both.tokens_used == alone.tokens_used
