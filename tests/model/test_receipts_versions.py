"""Which version is written for which settings, and where every setting of ours stands in a receipt."""

import pytest
from pydantic import TypeAdapter

from prme_ray.model.enums import Adjustment
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.receipts import recorded_packing, recorded_scoring, version_for
from prme_ray.model.receipts.schema import Packing, Scoring
from prme_ray.model.receipts.versions import ADDED, ADJUSTMENTS, OPTIONAL, OURS_ONLY, THEIRS_ONLY
from prme_ray.model.settings import PackingSettings, ScoringSettings
from tests.model import receipt_cases

WEIGHTED = {"fusion": "weighted", "rrf_recency_boost": None, "rrf_tie_break": None}
PLAIN = {"fusion": "rrf", "rrf_recency_boost": None, "rrf_tie_break": None}
AUDITABLE = {"context_format": "auditable", "session_context_rank_fusion_score_decay": None}
ADJACENT = AUDITABLE | {"session_context_packing": "adjacent"}


@pytest.mark.parametrize(
    ("version", "scoring", "packing", "options"),
    [
        (2, WEIGHTED, AUDITABLE | {"multipath_ordering": "density"}, {"execution": False}),
        (12, WEIGHTED, AUDITABLE, {}),
        (12, WEIGHTED, {"context_format": "compact"}, {}),
        (12, WEIGHTED, AUDITABLE | {"fold_repeated_text": True}, {}),
        (13, WEIGHTED, AUDITABLE, {"rank_assignment": True}),
        (14, WEIGHTED, {"fold_repeated_text": False}, {"rank_assignment": True}),
        (16, PLAIN, AUDITABLE, {"rank_assignment": True}),
        (17, PLAIN, {"context_format": "compact"}, {}),
        (18, PLAIN, AUDITABLE, {"min_score_skipped": True}),
        (18, PLAIN, {"context_format": "auditable"}, {"min_score_skipped": True}),
        (19, {}, {"fold_repeated_text": False}, {"min_score_skipped": True}),
        (19, PLAIN | {"rrf_tie_break": "event_time"}, AUDITABLE, {}),
        (19, {}, ADJACENT | {"session_context_window": 0}, {}),
        (20, WEIGHTED | {"recency_time": "event_time"}, {"fold_repeated_text": False}, {}),
        (21, {}, ADJACENT, {"min_score_skipped": True}),
        (21, WEIGHTED | {"recency_time": "event_time"}, ADJACENT, {}),
        (22, {}, {}, {}),
        (22, WEIGHTED, {}, {}),
        (22, {}, {"session_context_packing": "adjacent"}, {}),
    ],
)
def test_the_lowest_version_that_states_the_settings(version, scoring, packing, options):
    assert version_for(ScoringSettings(**scoring), PackingSettings(**packing), **options) == version
    assert version in receipt_cases.WRITTEN


@pytest.mark.parametrize(
    ("scoring", "packing", "options", "named"),
    [
        ({}, {}, {}, "fusion"),
        (WEIGHTED, AUDITABLE, {}, "multipath_ordering"),
        (WEIGHTED, {"context_format": "compact", "multipath_ordering": "density"}, {}, "context_format"),
        (WEIGHTED | {"recency_time": "event_time"}, AUDITABLE, {}, "recency_time"),
        (WEIGHTED, ADJACENT, {}, "session_context_packing"),
        (WEIGHTED, AUDITABLE | {"episode_context_top_k": 1}, {}, "episode_context_top_k"),
        (WEIGHTED, AUDITABLE, {"rank_assignment": True}, "neural_rank_assignment"),
    ],
)
def test_without_an_execution_descriptor_little_can_be_stated(scoring, packing, options, named):
    with pytest.raises(InvalidRequest, match=named):
        version_for(ScoringSettings(**scoring), PackingSettings(**packing), execution=False, **options)


@pytest.mark.parametrize("version", receipt_cases.WRITTEN)
def test_settings_are_recorded_as_a_receipt_of_the_version_has_them(version):
    fused = version in receipt_cases.FUSED
    wanted = receipt_cases.packing(version, fused=fused)
    given = {name: value for name, value in wanted.items() if name in PackingSettings.model_fields}
    given = {"context_format": "auditable", "session_context_rank_fusion_score_decay": None} | given
    recorded = recorded_packing(PackingSettings(**given), version=version, fused=fused)
    assert list(recorded.items()) == list(wanted.items())
    wanted = receipt_cases.weights(version, fused=fused)
    if not fused:
        unset = {"fusion": "weighted", "rrf_recency_boost": None, "rrf_tie_break": None}
    else:
        unset = {"rrf_recency_boost": None, "rrf_tie_break": None} if version < 19 else {}
    recorded = recorded_scoring(ScoringSettings(**wanted | unset), version=version)
    assert list(recorded.items()) == list(wanted.items())


def test_what_has_no_effect_is_left_out():
    idle = PackingSettings(context_format="compact", session_context_packing="adjacent", session_context_top_k=0)
    fused, weighted = (recorded_packing(idle, version=19, fused=fused) for fused in (True, False))
    assert {"fold_repeated_text", "session_context_packing"}.isdisjoint(fused)
    assert set(fused) - set(weighted) == {"session_context_rank_fusion_score_decay"}


def test_every_setting_of_ours_has_a_place_or_is_listed():
    assert set(PackingSettings.model_fields) - OURS_ONLY == set(Packing.__annotations__) - set(THEIRS_ONLY)
    assert set(ScoringSettings.model_fields) == set(Scoring.__annotations__)
    # The order of the text is that of our settings, where both have them.
    shared = [name for name in Packing.__annotations__ if name not in THEIRS_ONLY]
    assert shared == [name for name in PackingSettings.model_fields if name not in OURS_ONLY]
    assert list(ScoringSettings.model_fields) == list(Scoring.__annotations__)


def test_the_table_knows_every_optional_key_and_every_adjustment():
    unset: set[str] = set()
    for model in (Packing, Scoring):
        schema = TypeAdapter(model).json_schema()
        unset |= schema["properties"].keys() - set(schema["required"])
    assert unset - {added.name for added in ADDED} == set(OPTIONAL) - {"min_score_skipped"}
    assert set(ADJUSTMENTS) == set(Adjustment)
    old = receipt_cases.packing(3, fused=False)
    assert {added.name for added in ADDED if added.group == "packing"}.isdisjoint(old)
