"""Defaults are the product's, wrong keys and values are named, and the fingerprint follows the answer."""

import json
import warnings

import pytest
from pydantic import BaseModel, ValidationError

from prme_ray.model.enums import EpistemicType, NodeType
from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import PackingSettings, ScoringSettings, Settings
from prme_ray.model.settings.base import finite


def groups(model=Settings, where=""):
    yield where, model
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from groups(field.annotation, f"{where}{name}.")


def test_defaults_are_those_of_decision_1():
    scoring, packing = Settings().scoring, Settings().packing
    weights = [scoring.w_semantic, scoring.w_lexical, scoring.w_graph]
    weights += [scoring.w_recency, scoring.w_salience, scoring.w_confidence]
    assert weights == [0.25, 0.20, 0.20, 0.10, 0.10, 0.15]
    assert (packing.vector_k, packing.lexical_k, packing.graph_max_candidates) == (500, 500, 150)
    assert (packing.graph_max_hops, packing.min_edge_confidence) == (3, 0.40)
    assert (scoring.fusion, scoring.rrf_k, scoring.rrf_recency_boost, scoring.rrf_tie_break) == (
        "rrf",
        60,
        0.25,
        "event_time",
    )
    assert packing.session_context_rank_fusion_score_decay == 0.6
    assert (packing.context_format, packing.multipath_ordering, packing.fold_repeated_text) == (
        "reader",
        "balanced",
        True,
    )
    assert Settings().unverified_confidence_threshold == 0.30


@pytest.mark.parametrize(("where", "model"), list(groups()), ids=str)
def test_every_setting_has_a_sentence(where, model):
    missing = [f"{where}{name}" for name, field in model.model_fields.items() if not field.description]
    assert missing == []


@pytest.mark.parametrize(
    ("data", "argument", "hint"),
    [
        ({"scorring": {}}, "scorring", "'scoring'"),
        ({"scoring": {"fussion": "rrf"}}, "fussion", "'fusion'"),
        ({"packing": {"vector_k": -1}}, "packing.vector_k", "0"),
        ({"packing": {"graph_max_hops": 4}}, "packing.graph_max_hops", "3"),
        ({"packing": {"context_format": "xml"}}, "packing.context_format", "reader"),
        ({"packing": {"token_budget": float("inf")}}, "packing.token_budget", "finite"),
        ({"scoring": {"w_semantic": 0.5}}, "scoring", "sum to 1"),
        ({"scoring": {"relevance_floor": float("nan")}}, "scoring.relevance_floor", "finite"),
        ({"scoring": {"current_update_multiplier": 2.1}}, "scoring.current_update_multiplier", "2"),
        ({"storage": {"virtual_shards": 0}}, "storage.virtual_shards", "1"),
        ({"confidence_overrides": {"asserted:nobody": 0.5}}, "confidence_overrides", "asserted:user_stated"),
        ({"epistemic_weights": {"observed": 1.5}}, "epistemic_weights.observed", "1"),
    ],
)
def test_a_wrong_setting_is_refused_and_named(data, argument, hint):
    with pytest.raises(InvalidSettings) as caught:
        Settings.parse(data)
    assert caught.value.argument == argument
    assert hint in caught.value.allowed


def test_options_that_exclude_each_other_are_refused():
    with pytest.raises(InvalidSettings, match="evidence_augmentation_top_k"):
        PackingSettings(evidence_projection_top_k=1, evidence_augmentation_top_k=1)
    with pytest.raises(InvalidSettings, match="context_citations"):
        PackingSettings(context_citations=True, context_format="compact")


def test_finite_finds_a_number_deep_inside():
    with pytest.raises(InvalidSettings, match=r"^a\.b\[1\]"):
        finite({"a": {"b": [1.0, float("-inf")]}}, "")


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(ValidationError, match="frozen"):
        Settings().packing.vector_k = 3


def test_fusion_only_settings_are_dropped_under_the_weighted_formula():
    with pytest.warns(UserWarning, match=r"scoring\.rrf_k has no effect"):
        scoring = ScoringSettings(fusion="weighted", rrf_k=30)
    assert (scoring.rrf_k, scoring.rrf_recency_boost, scoring.rrf_tie_break) == (None, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ScoringSettings(fusion="weighted").rrf_k is None


def test_the_recency_clock_is_dropped_under_rank_fusion():
    with pytest.warns(UserWarning, match="recency_time has no effect"):
        assert ScoringSettings(recency_time="event_time").recency_time is None
    assert ScoringSettings(fusion="weighted", recency_time="event_time").recency_time == "event_time"


def test_the_caller_s_mapping_is_left_alone():
    data = {"fusion": "weighted"}
    ScoringSettings.model_validate(data)
    assert data == {"fusion": "weighted"}


@pytest.mark.parametrize("fusion", ["rrf", "weighted"])
def test_settings_survive_json(fusion):
    before = Settings(scoring={"fusion": fusion, "node_type_boost": {NodeType.FACT: 2.0}})
    assert Settings.parse(json.loads(before.model_dump_json())) == before


def test_the_fingerprint_ignores_what_changes_no_answer():
    plain = Settings().fingerprint()
    assert len(plain) == 64
    assert Settings().fingerprint() == plain
    assert Settings(storage={"write_queue": 1}, encoder={"workers": 1}, log_retrievals=False).fingerprint() == plain


@pytest.mark.parametrize(
    "changed",
    [
        {"packing": {"token_budget": 4095}},
        {"scoring": {"recency_lambda": 0.03}},
        {"epistemic_weights": {EpistemicType.OBSERVED: 0.9}},
        {"disabled_channels": ("GRAPH",)},
        {"query_intent_order": "temporal_first"},
        {"link_entities": False},
    ],
    ids=lambda data: next(iter(data)),
)
def test_the_fingerprint_follows_what_changes_an_answer(changed):
    assert Settings(**changed).fingerprint() != Settings().fingerprint()
