"""An answer: its parts agree with each other, and every option of a request does what it says."""

import json
import math

import pytest

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.settings import ScoringSettings
from storage.records import OwnerKey
from tests.memory.tools import OWNER, WordEncoder

REQUEST = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
NAIVE = "2026-05-04T10:00:00"
REFUSED = [
    ("query", {"query": None}),
    ("query", {"query": "a\x00"}),
    ("query", {"query": "\ud800"}),
    ("owner", {"owner": ""}),
    ("owner", {"owner": 5}),
    ("tenant", {"tenant": ""}),
    ("request_id", {"request_id": "mine"}),
    ("request_id", {"request_id": ""}),
    ("request_id", {"request_id": 5}),
    ("scope", {"scope": []}),
    ("scope", {"scope": {"personal"}}),
    ("scope", {"scope": ["personal", "moon"]}),
    ("scope", {"scope": "PERSONAL"}),
    ("token_budget", {"token_budget": -1}),
    ("token_budget", {"token_budget": True}),
    ("token_budget", {"token_budget": 10.0}),
    ("min_fidelity", {"min_fidelity": "half"}),
    ("min_score", {"min_score": -0.1}),
    ("min_score", {"min_score": math.nan}),
    ("min_score", {"min_score": 10**400}),
    ("min_score", {"min_score": "0"}),
    ("limit", {"limit": -1}),
    ("limit", {"limit": False}),
    ("limit", {"limit": 2.0}),
    ("max_per_source", {"max_per_source": 0}),
    ("max_per_evidence", {"max_per_evidence": True}),
    ("exclude_node_types", {"exclude_node_types": "fact"}),
    ("exclude_node_types", {"exclude_node_types": ["memo"]}),
    ("source_types", {"source_types": ["rumour"]}),
    ("source_types", {"source_types": 5}),
    ("weights", {"weights": 5}),
    ("weights.w_semantik", {"weights": {"w_semantik": 1}}),
    ("weights.w_*", {"weights": {"w_semantic": 0.9}}),
    ("ranking_multipliers", {"ranking_multipliers": {"luck": 1}}),
    ("ranking_multipliers.semantic", {"ranking_multipliers": {"semantic": 5}}),
    ("ranking_multipliers.semantic", {"ranking_multipliers": {"semantic": math.nan}}),
    ("ranking_multipliers", {"ranking_multipliers": {"semantic": 2}}),
    ("retrieval_mode", {"retrieval_mode": "all"}),
    ("include_cross_scope", {"include_cross_scope": "false"}),
    *[
        (name, {name: value})
        for name in ("reference_time", "time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to")
        for value in (NAIVE, "soon", 5)
    ],
]


@pytest.mark.parametrize(("argument", "given"), REFUSED, ids=lambda case: case if isinstance(case, str) else "")
def test_a_wrong_argument_is_named_before_anything_is_searched(opened, argument, given):
    encoder = WordEncoder()
    memory = opened(encoder=encoder)
    given = {"query": "text", "owner": OWNER, **given}
    query = given.pop("query")
    with pytest.raises(InvalidRequest) as caught:
        memory.retrieve(query, **given)
    assert caught.value.argument == argument
    assert encoder.texts == []


@pytest.fixture
def cats(memory):
    texts = [
        "Oscar is a black cat.",
        "A cat sleeps all day.",
        "The dog chased the cat.",
        "Rain in Lisbon.",
        "Tea is hot.",
    ]
    memory.store_many(texts, owner=OWNER)
    return memory


def test_the_parts_of_an_answer_agree(cats):
    answer = cats.retrieve("black cat", owner=OWNER, request_id=REQUEST.upper())
    bundle, metadata = answer.bundle, answer.metadata
    assert metadata.request_id == REQUEST
    assert metadata.outcome == "results"
    scores = [(-candidate.score, candidate.node_id) for candidate in answer.results]
    assert scores == sorted(scores)
    assert answer.results[0].content == "Oscar is a black cat."
    packed = [node_id for ids in bundle.sections.values() for node_id in ids]
    assert sorted(packed) == sorted(c.node_id for c in answer.results if c.in_context)
    assert bundle.included_count == metadata.candidates_included == len(packed)
    assert set(packed) | set(bundle.excluded) == set(answer.results.ids)
    assert bundle.tokens_used <= bundle.token_budget
    assert metadata.candidates_generated["VECTOR"] == 5
    assert metadata.candidates_generated["LEXICAL"] == 3
    assert set(metadata.backends_used) == {"VECTOR", "LEXICAL"}
    assert (metadata.backend_failures, metadata.embedding_mismatch, metadata.receipt_persisted) == ({}, False, True)
    assert metadata.timings_ms["total"] > 0


def test_an_answer_is_plain_json(cats):
    answer = cats.retrieve("how many cats", owner=OWNER, scope="personal", knowledge_at="2030-01-01T00:00:00Z")
    text = json.dumps(answer.to_dict(), allow_nan=False)
    assert set(json.loads(text)) == {"bundle", "results", "excluded", "cross_scope_hints", "metadata"}
    assert "timings_ms" not in answer.to_dict(timings=False)["metadata"]


@pytest.mark.parametrize("budget", [0, 99, 100, 120, 200, 2**63 - 1])
def test_the_context_never_exceeds_the_budget(cats, budget):
    bundle = cats.retrieve("cat", owner=OWNER, token_budget=budget).bundle
    assert bundle.tokens_used <= max(0, budget - 100)
    assert (bundle.included_count == 0) == (bundle.context == "")
    if budget == 2**63 - 1:
        assert bundle.included_count == 5
    if budget <= 100:
        assert set(bundle.excluded.values()) == {"budget"}


def test_a_limit_counts_everything_and_nothing_is_a_limit_too(cats):
    for limit in (0, 1, 3, 5, 2**63 - 1):
        answer = cats.retrieve("cat", owner=OWNER, limit=limit)
        assert len(answer.results) == min(limit, 5)
        assert answer.metadata.exclusion_counts == ({"result_limit": 5 - limit} if limit < 5 else {})


def test_a_floor_is_inclusive_and_on_the_cosine_under_rank_fusion(cats):
    best = cats.retrieve("Oscar is a black cat.", owner=OWNER).results[0]
    assert best.semantic_relevance == pytest.approx(1, abs=1e-6)
    kept = cats.retrieve("Oscar is a black cat.", owner=OWNER, min_score=best.semantic_relevance)
    assert kept.results.ids == [best.node_id]
    assert kept.metadata.exclusion_counts == {"below_threshold": 4}
    assert not kept.metadata.min_score_skipped


def test_a_search_that_finds_nothing_is_no_failure_and_keeps_the_floor(opened):
    memory = opened(settings={"packing": {"vector_k": 0}})
    memory.store("Oscar is a black cat.", owner=OWNER)
    assert len(memory.retrieve("cat", owner=OWNER, min_score=0).results) == 1
    answer = memory.retrieve("cat", owner=OWNER, min_score=0.01)
    assert (len(answer.results), answer.metadata.min_score_skipped) == (0, False)
    assert (answer.metadata.backend_failures, answer.metadata.embedding_mismatch) == ({}, False)


def test_caps_count_memories_of_one_source(memory):
    event = memory.store("the whole conversation", owner=OWNER).event_id
    for text in ("cat one", "cat one", "cat two"):
        memory.store_node(text, owner=OWNER, node_type="fact", evidence_refs=[event], confidence=0.9)
    counts = memory.retrieve("cat", owner=OWNER, max_per_source=1).metadata.exclusion_counts
    assert counts == {"source_limit": 1}
    counts = memory.retrieve("cat", owner=OWNER, max_per_evidence=2).metadata.exclusion_counts
    assert counts == {"evidence_limit": 2}


def test_citations_resolve_to_memories(opened):
    memory = opened(settings={"packing": {"context_citations": True}})
    stored = memory.store("Oscar is a cat.", owner=OWNER)
    bundle = memory.retrieve("cat", owner=OWNER).bundle
    assert "[m1]" in bundle.context
    assert bundle.resolve("m1") == stored.node_id
    with pytest.raises(InvalidRequest, match="m1"):
        bundle.resolve("m2")


def test_a_requests_options_leave_the_next_request_alone(cats):
    before = cats.retrieve("cat", owner=OWNER)
    cats.retrieve("cat", owner=OWNER, token_budget=0, min_fidelity="full", weights=ScoringSettings(fusion="weighted"))
    after = cats.retrieve("cat", owner=OWNER)
    assert before.bundle == after.bundle


def operations(memory):
    owner = OwnerKey("default", OWNER)
    shard = memory._store.shard_of(owner)
    return shard.log.operations(shard.owner_no(owner))


def test_every_retrieval_is_in_the_log_with_scores_and_reasons(cats, opened):
    answer = cats.retrieve("cat", owner=OWNER, limit=2, request_id=REQUEST)
    assert answer.metadata.receipt_persisted
    cats.close()
    memory = opened()
    (row,) = operations(memory)
    record = memory.get_retrieval(REQUEST, owner=OWNER).record
    assert (row.op_type, row.target, record["request_id"], record["query"]) == (
        "RETRIEVAL_REQUEST",
        REQUEST,
        REQUEST,
        "cat",
    )
    assert record["scores"] == {candidate.node_id: candidate.score for candidate in answer.results}
    assert record["excluded"] == {item.node_id: item.reason for item in answer.excluded}
    assert record["snapshot"] == answer.metadata.snapshot
    assert record["settings_fingerprint"] == answer.metadata.settings_fingerprint


def test_a_record_says_what_was_asked_and_what_the_answer_said_of_itself(opened):
    memory = opened()
    memory.store_many(["a cat", "another cat", "a dog"], owner=OWNER)
    answer = memory.retrieve(
        "How many cats do I have?",
        owner=OWNER,
        scope=["personal", "agent"],
        knowledge_at="2030-01-01T00:00:00Z",
        time_from="2020-01-01T00:00:00Z",
        limit=1,
        max_per_source=2,
    )
    said = answer.metadata.model_dump(mode="json")
    record = memory.get_retrieval(answer.metadata.request_id, owner=OWNER).record
    asked = {"tenant": "default", "user_id": OWNER, "namespace_scope": ["agent", "personal"], "result_limit": 1}
    asked |= {"knowledge_at": "2030-01-01T00:00:00Z", "time_from": "2020-01-01T00:00:00Z", "time_to": None}
    assert {name: record[name] for name in asked} == asked
    # Everything that the RFC and the reference record under the name the answer has for it.
    shared = record.keys() & said.keys()
    assert {name: record[name] for name in shared} == {name: said[name] for name in shared}
    assert shared >= {
        *("request_id", "reference_time", "retrieval_mode", "query_intent", "query_time_from", "query_time_to"),
        *("candidates_generated", "candidates_after_filter", "candidates_filtered", "candidates_included"),
        *("min_score", "result_limit", "max_per_source", "max_per_evidence", "min_score_skipped", "scope_filter"),
        *("backends_used", "backend_failures", "embedding_mismatch", "scoring_config_version"),
        *("aggregation_coverage", "historical_coverage", "snapshot"),
    }
    assert said["aggregation_coverage"] and said["historical_coverage"]
    assert record["selection_excluded"] == {
        item.node_id: "result_limit" for item in answer.excluded if item.reason == "result_limit"
    }
    assert len(record["selection_excluded"]) == 2
    bundle = answer.bundle
    assert (record["token_budget"], record["context_budget"], record["tokens_used"], record["tokenizer"]) == (
        bundle.token_budget,
        bundle.token_budget,
        bundle.tokens_used,
        bundle.tokenizer,
    )
    assert record["embedding_model_version"] == said["encoder"]
    assert record["cross_scope_hint_count"] == len(answer.cross_scope_hints)


def test_without_logging_the_log_holds_no_retrieval(opened):
    memory = opened(settings={"log_retrievals": False})
    memory.store("a cat", owner=OWNER)
    assert not memory.retrieve("cat", owner=OWNER).metadata.receipt_persisted
    memory.close()
    assert operations(opened()) == []


def test_a_channel_that_fails_is_named_and_the_others_answer(opened):
    class Broken(WordEncoder):
        def embed_query(self, text):
            raise ConnectionError(text)

    memory = opened(encoder=Broken())
    stored = memory.store("Oscar is a cat.", owner=OWNER)
    answer = memory.retrieve("cat", owner=OWNER, min_score=0.5, scope="personal")
    assert answer.metadata.backend_failures == {"VECTOR": "backend_error"}
    assert answer.metadata.min_score_skipped
    assert not answer.metadata.embedding_mismatch
    assert answer.results.ids == [stored.node_id]
    assert answer.results[0].paths == ["LEXICAL"]


def test_channels_can_be_switched_off(opened):
    memory = opened(settings={"disabled_channels": ["VECTOR", "LEXICAL", "GRAPH"]})
    memory.store("Oscar is a cat.", owner=OWNER)
    pin = memory.store_node("Dana likes tea.", owner=OWNER, node_type="fact", pinned=True)
    answer = memory.retrieve("cat", owner=OWNER)
    assert answer.results.ids == [pin.node_id]
    assert (answer.metadata.backend_failures, answer.metadata.backends_used) == ({}, ["PINNED"])


def test_memories_of_one_session_and_one_name_find_each_other(memory):
    memory.store("Caroline moved to Porto.", owner=OWNER)
    answer = memory.retrieve("Where does Caroline live?", owner=OWNER)
    assert "GRAPH" in answer.results[0].paths
