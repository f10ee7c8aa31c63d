"""Defaults are the product's, wrong keys and values are named, and the fingerprint follows the answer."""

import json
import math
import warnings

import pytest
from pydantic import BaseModel, ValidationError

from prme_ray.model.enums import EpistemicType, NodeType, Scope
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
        ({"scoring": {"fussion": "rrf"}}, "scoring.fussion", "'fusion'"),
        ({"packing": {"vector_k": -1}}, "packing.vector_k", "0"),
        ({"packing": {"graph_max_hops": 4}}, "packing.graph_max_hops", "3"),
        ({"packing": {"context_format": "xml"}}, "packing.context_format", "reader"),
        ({"packing": {"token_budget": float("inf")}}, "packing.token_budget", "finite"),
        ({"scoring": {"w_semantic": 0.5}}, "scoring.w_*", "sum to 1"),
        ({"scoring": {"relevance_floor": float("nan")}}, "scoring.relevance_floor", "finite"),
        ({"scoring": {"current_update_multiplier": 2.1}}, "scoring.current_update_multiplier", "2"),
        ({"storage": {"virtual_shards": 0}}, "storage.virtual_shards", "1"),
        (
            {"confidence_overrides": {"asserted:nobody": 0.5}},
            "confidence_overrides.asserted:nobody",
            "asserted:user_stated",
        ),
        ({"epistemic_weights": {"observed": 1.5}}, "epistemic_weights.observed", "1"),
        ({"epistemic_weights": {"observd": 0.5}}, "epistemic_weights.observd", "'observed'"),
        ({"epistemic_weights": {"observed": True}}, "epistemic_weights.observed", "number"),
        ({"packing": {"vector_k": True}}, "packing.vector_k", "int"),
        ({"packing": {"vector_k": "5"}}, "packing.vector_k", "int"),
        ({"link_entities": 1}, "link_entities", "bool"),
        ({"packing": 5}, "packing", "dictionary"),
        ({"packing": {"context_citations": True, "context_format": "compact"}}, "packing.context_citations", "False"),
        ({"scoring": {"node_type_boost": {"fact": -1}}}, "scoring.node_type_boost.fact", "weighted"),
        ({"temporal_languages": ["english"]}, "temporal_languages.0", "pattern"),
        ({"scope_scoring": {"work": {}}}, "scope_scoring.work", "'project'"),
        ({"scope_scoring": {"project": {"w_graph": 1}}}, "scope_scoring.project.w_*", "sum to 1"),
        ({"scope_scoring": {"project": {"rrf_k": 0}}}, "scope_scoring.project.rrf_k", "1"),
        ({"scope_scoring": {"project": {"w_grap": 0}}}, "scope_scoring.project.w_grap", "'w_graph'"),
        (
            {"scope_scoring": {"project": {"node_type_boost": {"fact": math.nan}}}},
            "scope_scoring.project.node_type_boost.fact",
            "finite",
        ),
        ({"scope_scoring": [1]}, "scope_scoring", "dictionary"),
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


def test_a_group_built_directly_names_its_own_field():
    with pytest.raises(InvalidSettings, match=r"^vector_k=-1 is not allowed"):
        PackingSettings(vector_k=-1)
    with pytest.raises(InvalidSettings, match=r"^packing\.vector_k=-1 is not allowed"):
        Settings(packing={"vector_k": -1})


def test_settings_are_no_mapping_of_another_kind():
    with pytest.raises(InvalidSettings, match=r"^settings=5 is not allowed"):
        Settings.parse(5)


def test_a_copy_made_past_validation_is_checked_again():
    settings = Settings()
    assert settings.checked() == settings
    bad = settings.model_copy(update={"packing": settings.packing.model_copy(update={"graph_max_hops": 9})})
    with pytest.raises(InvalidSettings, match=r"^packing\.graph_max_hops=9"):
        bad.checked()
    with pytest.warns(UserWarning, match=r"scoring\.rrf_\w+ has no effect"):
        assert settings.scoring.model_copy(update={"fusion": "weighted"}).checked().rrf_k is None


def test_a_scope_has_its_own_scoring_only_where_it_is_asked_for_alone():
    settings = Settings(scope_scoring={"project": {"fusion": "weighted"}})
    assert settings.scoring_for({Scope.PROJECT}).fusion == "weighted"
    for scopes in (None, {Scope.AGENT}, {Scope.PROJECT, Scope.AGENT}):
        assert settings.scoring_for(scopes) is settings.scoring


def test_an_entry_of_a_scope_takes_nothing_from_the_general_scoring():
    settings = Settings(scoring={"fusion": "weighted"}, scope_scoring={"project": {"temporal_boost": 0.5}})
    assert settings.scope_scoring[Scope.PROJECT] == ScoringSettings(temporal_boost=0.5)


def test_channels_switched_off_are_a_set():
    off = [Settings(disabled_channels=given) for given in (("GRAPH", "VECTOR"), ["VECTOR", "GRAPH", "VECTOR"])]
    assert off[0].disabled_channels == off[1].disabled_channels == ("GRAPH", "VECTOR")


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
        {"scope_scoring": {"project": {}}},
    ],
    ids=lambda data: next(iter(data)),
)
def test_the_fingerprint_follows_what_changes_an_answer(changed):
    assert Settings(**changed).fingerprint() != Settings().fingerprint()
