"""Every rule of admissibility by one receipt that breaks it and nothing else."""

import pytest

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts import checked
from tests.model.receipt_cases import FIRST, PACKING, SECOND, THIRD, VERSIONS, receipt


def refused(made):
    with pytest.raises(ReceiptRejected) as caught:
        checked(made)
    assert caught.value.failed_at == "validation"
    return caught.value.detail


def put(made, path, value):
    """Set, or with ``...`` remove, what stands at a dotted path; candidates are named by place."""
    *parts, last = path.split(".")
    for part in parts:
        made = made[int(part)] if isinstance(made, list) else made[part]
    if value is ...:
        del made[last]
    else:
        made[last] = value


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "value", "since"), [row for row in PACKING if row[2] > 1])
def test_a_setting_stands_from_its_version_on(version, name, value, since):
    made = receipt(version)
    optional = since >= 17
    if name in made["packing"]:
        del made["packing"][name]
        if not optional:
            assert f"version {version} needs packing.{name}" in refused(made)
    else:
        assert version < since or name.startswith("session_context_rank")
        made["packing"][name] = value
        assert name in refused(made)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_parts_of_a_receipt_stand_from_their_version_on(version):
    whole = receipt(22)
    for part, since in (("score_provenance", 2), ("ranking_policy", 2), ("execution", 3)):
        made = receipt(version)
        if version >= since:
            del made[part]
        else:
            made[part] = whole[part]
        assert part in refused(made)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_formulas_have_their_versions(version):
    other = version not in (15, 16, 17, 18, 19)
    if version in (21, 22):
        assert checked(receipt(version, fused=True))
        assert checked(receipt(version, fused=False))
    else:
        assert "fus" in refused(receipt(version, fused=other))


@pytest.mark.parametrize(
    ("version", "path", "value", "detail"),
    [
        (4, "packing.multipath_ordering", "balanced", "no balanced ordering"),
        (13, "packing.context_format", "reader", "no reader format"),
        (14, "packing.context_citations", True, "needs the reader format"),
        (22, "packing.context_format", "compact", "outside the reader format"),
        (22, "packing.fold_repeated_text", ..., "lacks the setting that it was made for"),
        (21, "packing.session_context_window", 0, "without session expansion"),
        (21, "packing.session_context_packing", ..., "lacks the setting"),
        (20, "scoring.recency_time", ..., "lacks the setting"),
        (18, "min_score_skipped", ..., "lacks the setting"),
        (17, "packing.session_context_rank_fusion_score_decay", ..., "lacks the setting"),
        (17, "min_score_skipped", True, "version 17 has no receipt.min_score_skipped"),
        (18, "min_score", 0.0, "a positive min_score"),
        (18, "min_score", None, "a positive min_score"),
        (12, "packing.evidence_projection_top_k", 1, None),
        (22, "scoring.rrf_k", ..., "needs scoring.rrf_k"),
        (22, "scoring.recency_time", "event_time", "belongs to the weighted formula"),
        (22, "scoring.node_type_boost", {"fact": -1.0}, "no negative"),
        (20, "scoring.rrf_k", 60, "belong to rank fusion"),
        (12, "scoring.w_graph", 0.25, "sum to"),
        (12, f"score_provenance.{FIRST}.weights.w_graph", 0.25, "additive weights of weights sum to"),
        (9, "scoring.current_update_multiplier", ..., "needs scoring.current_update_multiplier"),
        (9, f"score_provenance.{THIRD}.weights.current_update_multiplier", ..., "needs scoring.current_update"),
        (22, f"score_provenance.{FIRST}.weights.rrf_k", 61, "other options"),
        (22, f"score_provenance.{FIRST}.weights.rrf_recency_boost", ..., "other options"),
        (22, f"score_provenance.{FIRST}.formula_version", 1, "does not fit"),
        (22, f"score_provenance.{FIRST}.rank_fusion", ..., "formula 2 does not fit"),
        (22, f"score_provenance.{FIRST}.rank_fusion.tie_break", ..., "a tie-break stands"),
        (22, f"score_provenance.{FIRST}.rank_fusion.recency_boost_factor", 1.0, "to some candidates only"),
        (22, f"score_provenance.{FIRST}", ..., "not for the candidates"),
        (22, "candidates.1.node_id", FIRST, "listed twice"),
        (22, "candidates.0.in_context", False, "a context that it is not in"),
        (22, "candidates.0.representation", None, "at no level"),
        (22, "candidates.0.trace.salience", 0.5, "another trace"),
        (22, "candidates.0.semantic_relevance", ..., "lacks its semantic_relevance"),
        (22, "candidates.0.semantic_relevance", 0.7, "below its cosine"),
        (22, "candidates.1.semantic_relevance", 0.7, "below its cosine"),
        (12, "candidates.0.semantic_relevance", 0.9, "has a semantic_relevance"),
        (15, "candidates.0.semantic_relevance", 0.9, "has a semantic_relevance"),
        (22, "min_score", 0.5, "below min_score"),
        (18, "candidates.0.semantic_relevance", 0.1, "the floor was skipped"),
        (22, "packing.session_context_rank_fusion_score_decay", 0.7, "a session decay of 0.6"),
    ],
)
def test_what_must_fit_together(version, path, value, detail):
    made = receipt(version)
    put(made, path, value)
    if detail is None:
        put(made, "packing.evidence_augmentation_top_k", 1)
        detail = "exclude each other"
    assert detail in refused(made)


@pytest.mark.parametrize(
    ("kind", "since", "coefficients", "others"),
    [
        ("neural_blend", 2, (0.0, 1.0), (-0.1, 1.1)),
        ("neural_rank_assignment", 13, (0.0, 7.0), (-0.1,)),
        ("current_update", 9, (1.0, 2.0), (0.9, 2.1)),
        ("session_decay", 2, (-1.0, 3.0), ()),
        ("episode_decay", 8, (-1.0, 3.0), ()),
        ("evidence_projection", 10, (0.1, 1.0), (0.0, 1.1)),
        ("evidence_augmentation", 11, (0.1, 1.0), (0.0, 1.1)),
    ],
)
def test_adjustments_have_their_versions_and_ranges(kind, since, coefficients, others):
    def step(coefficient, version=20, neural=0.5 if kind == "neural_blend" else None):
        made = receipt(version)
        given = {"kind": kind, "coefficient": coefficient, "neural_score": neural, "source_node_id": SECOND}
        made["score_provenance"][FIRST]["adjustments"] = [given]
        return made

    for coefficient in coefficients:
        assert checked(step(coefficient))
    for coefficient in others:
        assert "with coefficient" in refused(step(coefficient))
    assert checked(step(1.0, since))
    if since > 2:
        assert f"version {since - 1} has no adjustment" in refused(step(1.0, since - 1))
    assert "a neural score" in refused(step(1.0, neural=None if kind == "neural_blend" else 0.5))


def test_a_recency_factor_needs_its_setting():
    made = receipt(17)
    for lineage in made["score_provenance"].values():
        lineage["rank_fusion"]["recency_boost_factor"] = 1.0
    assert "needs scoring.rrf_recency_boost" in refused(made)


def test_a_receipt_may_have_no_candidates():
    made = receipt(22) | {"candidates": [], "score_provenance": {}}
    assert checked(made)["candidates"] == []
