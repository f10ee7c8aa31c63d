"""How wide the channels look: limits, count and list questions, scans of names and keywords."""

from datetime import UTC, datetime

import pytest

from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.steps.generate import analyze, plan
from tests.memory.tools import FEW_SHARDS, OWNER, Clock, Ids, WordEncoder

COUNT, PLAIN = "How many pets do I have?", "the pets I have"


def planned(query, **packing):
    settings = Settings(packing=packing)
    request = make_request(
        query, request_id="r", tenant="t", owner="o", now=datetime(2026, 5, 4, tzinfo=UTC), settings=settings
    )
    order = plan(request, analyze(request, settings))
    return order.vector_k, order.lexical_k, order.graph_k


@pytest.mark.parametrize(
    ("query", "packing", "limits"),
    [
        (PLAIN, {}, (500, 500, 150)),
        (COUNT, {}, (1500, 1500, 450)),
        (COUNT, {"vector_k": 800}, (2000, 1500, 450)),
        (COUNT, {"aggregation_k_max": 400}, (400, 400, 400)),
        (COUNT, {"aggregation_k_multiplier": 1.5, "lexical_k": 3}, (750, 4, 225)),
        ("How many weeks passed since the pets came?", {}, (500, 500, 150)),
    ],
)
def test_count_and_list_questions_look_wider_up_to_a_limit(query, packing, limits):
    assert planned(query, **packing) == limits


@pytest.mark.parametrize(("languages", "found"), [(["fr"], [datetime(2023, 8, 6, tzinfo=UTC)]), (["en"], [])])
def test_dates_are_read_in_the_configured_languages(languages, found):
    settings = Settings(temporal_languages=languages)
    request = make_request(
        "le chat du 6 août 2023",
        request_id="r",
        tenant="t",
        owner="o",
        now=datetime(2026, 5, 4, tzinfo=UTC),
        settings=settings,
    )
    resolved = [signal.resolved for signal in analyze(request, settings).temporal_signals]
    assert [value for value in resolved if value == datetime(2023, 8, 6, tzinfo=UTC)] == found


@pytest.fixture
def scanned(tmp_path):
    """Return the texts that a question finds where the text search itself is cut at one hit."""
    from prme_ray import Memory

    packing = {"vector_k": 0, "lexical_k": 1, "aggregation_k_multiplier": 1.0}
    settings = FEW_SHARDS | {"packing": packing, "link_entities": False}
    with Memory.open(tmp_path / "m", encoder=WordEncoder(), settings=settings, clock=Clock(), new_id=Ids()) as memory:

        def ask(query, texts):
            memory.store_many(texts, owner=OWNER)
            return memory.retrieve(query, owner=OWNER)

        yield ask


def test_the_first_three_names_are_looked_up_by_themselves(scanned):
    names = ["Anna", "Bert", "Carl", "Dora", "Emil"]
    answer = scanned("did Anna, Bert, Carl, Dora, Emil call?", [f"note about {name}" for name in names])
    found = {candidate.content for candidate in answer.results}
    assert found >= {f"note about {name}" for name in names[:3]}
    assert len(found - {f"note about {name}" for name in names[:3]}) <= 1
    assert answer.metadata.candidates_generated["LEXICAL"] == len(found)


def test_a_name_brings_twenty_memories_at_most(scanned):
    answer = scanned("did Anna call?", [f"Anna, note {number}" for number in range(30)])
    assert 20 <= len(answer.results) <= 21


def test_a_keyword_brings_fifty_and_the_answer_says_that_it_was_cut(scanned):
    answer = scanned("How many pets?", [f"pets {number}" for number in range(60)])
    assert 50 <= len(answer.results) <= 51
    coverage = answer.metadata.aggregation_coverage
    assert {"LEXICAL", "LEXICAL_AGG"} <= set(coverage.candidate_limit_paths)
    assert coverage.status == "candidate_limited"
    assert "candidate_limit" in coverage.limitations
    assert answer.metadata.candidates_generated["LEXICAL_AGG"] == len(answer.results) - 1
