"""Evidence context; the first case is digest a section 12, 43: two claims that cite memory 100."""

import pytest

from prme_ray.model.enums import path_names
from prme_ray.model.settings.packing import PackingSettings
from stages.expand_evidence import evidence_refs, expand_evidence
from tests.conformance.tables import adjustments
from tests.stages.pool import by_number, nodes, number, numbers, scored, uid

CLAIMS = scored(
    {"n": 1, "score": 1.0, "cosine": 0.4, "evidence": [100]},
    {"n": 2, "score": 0.98, "cosine": 0.9, "evidence": [100]},
    {"n": 3, "score": 0.5},
    {"n": 4, "score": 0.2, "evidence": [101, 102]},
)
SOURCES = nodes(102, 101, 100)


def projection(**settings):
    return PackingSettings(**{f"evidence_projection_{name}": value for name, value in {"top_k": 1, **settings}.items()})


def augmentation(**settings):
    return PackingSettings(
        **{f"evidence_augmentation_{name}": value for name, value in {"top_k": 1, **settings}.items()}
    )


@pytest.mark.parametrize(
    ("packing", "wanted"),
    [
        (PackingSettings(), []),
        (projection(), [100]),
        (projection(top_k=2), [100, 101, 102]),
        (augmentation(top_k=9), [100, 101, 102]),
    ],
)
def test_the_first_groups_by_rank_are_looked_up(packing, wanted):
    assert [number(ref) for ref in evidence_refs(CLAIMS, packing)] == wanted


def test_projection_puts_the_source_in_the_place_of_its_claims():
    found = expand_evidence(CLAIMS, SOURCES, packing=projection())
    assert numbers(found.table) == [100, 3, 4]
    assert [number(node_id) for node_id in (*found.added, *found.removed)] == [100, 1, 2]
    row = by_number(found.table)[100]
    assert (row["composite_score"], row["path_count"], row["has_own_trace"]) == (1.0, 1, False)
    assert path_names(row["paths"]) == ("EVIDENCE_CONTEXT",)
    # The closest member's relevance, the anchor's lineage.
    assert (row["context_relevance"], row["base_node_id"], row["trace_semantic"]) == (0.9, uid(1), 0.4)
    assert adjustments(row) == [{"kind": "evidence_projection", "coefficient": 1.0, "source_node_id": uid(1)}]


def test_augmentation_puts_the_source_beside_them():
    found = expand_evidence(CLAIMS, SOURCES, packing=augmentation())
    assert [(n, row["composite_score"]) for n, row in by_number(found.table).items()] == [
        (1, 1.0),
        (100, 0.99),
        (2, 0.98),
        (3, 0.5),
        (4, 0.2),
    ]
    assert (found.added, found.removed) == ((uid(100),), ())


@pytest.mark.parametrize(("most", "places"), [(1, [101]), (2, [101, 102])])
def test_sources_are_taken_by_id_up_to_the_setting(most, places):
    found = expand_evidence(CLAIMS, SOURCES, packing=augmentation(top_k=2, max_sources=most))
    assert [number(node_id) for node_id in found.added if node_id != uid(100)] == places


def test_a_group_without_an_eligible_source_stays():
    elsewhere = nodes({"n": 100, "scope": "project"})
    for packing in (projection(), augmentation()):
        assert expand_evidence(CLAIMS, elsewhere, packing=packing).table is CLAIMS
        assert expand_evidence(CLAIMS, nodes(), packing=packing).table is CLAIMS
    # Group two is not looked at in its stead.
    assert expand_evidence(CLAIMS, nodes(101), packing=projection()).table is CLAIMS


def test_a_source_in_the_list_keeps_its_better_record():
    pool = scored({"n": 100, "score": 0.9, "cosine": 0.5}, {"n": 1, "score": 0.8, "cosine": 0.6, "evidence": [100]})
    found = expand_evidence(pool, SOURCES, packing=projection())
    row = by_number(found.table)[100]
    assert numbers(found.table) == [100]
    assert (row["composite_score"], row["has_own_trace"], row["path_count"]) == (0.9, True, 2)
    assert row["context_relevance"] == 0.6
    assert (found.added, found.removed) == ((), (uid(1),))


def test_a_source_in_the_list_is_replaced_by_a_better_offer():
    pool = scored({"n": 1, "score": 0.8, "cosine": 0.1, "evidence": [100]}, {"n": 100, "score": 0.7, "cosine": 0.5})
    found = expand_evidence(pool, SOURCES, packing=projection())
    row = by_number(found.table)[100]
    assert path_names(row["paths"]) == ("EVIDENCE_CONTEXT",)
    assert (row["composite_score"], row["has_own_trace"], row["context_relevance"]) == (0.8, False, 0.5)
    assert (found.added, found.removed) == ((), (uid(1),))
    beside = by_number(expand_evidence(pool, SOURCES, packing=augmentation()).table)[100]
    assert path_names(beside["paths"]) == ("VECTOR", "EVIDENCE_CONTEXT")
    assert (beside["composite_score"], beside["path_count"]) == (0.8 * 0.99, 2)


def test_a_memory_that_is_its_own_evidence_is_not_lost():
    pool = scored({"n": 100, "score": 0.9, "evidence": [100]}, {"n": 1, "score": 0.8, "evidence": [100]})
    found = expand_evidence(pool, SOURCES, packing=projection())
    assert [(n, row["composite_score"], row["has_own_trace"]) for n, row in by_number(found.table).items()] == [
        (100, 0.9, True)
    ]


def test_two_groups_with_one_source_give_it_the_best_offer():
    pool = scored(
        {"n": 1, "score": 0.8, "cosine": 0.1, "evidence": [100]},
        {"n": 2, "score": 0.6, "cosine": 0.7, "evidence": [100, 101]},
    )
    found = expand_evidence(pool, nodes(100), packing=projection(top_k=2))
    row = by_number(found.table)[100]
    assert numbers(found.table) == [100]
    assert (row["composite_score"], row["base_node_id"], row["context_relevance"]) == (0.8, uid(1), 0.7)


def test_entities_lead_no_group_when_so_set():
    pool = scored(
        {"n": 1, "score": 0.8, "node_type": "entity", "evidence": [100]}, {"n": 2, "score": 0.5, "evidence": [101]}
    )
    packing = augmentation(anchor_policy="non_entity")
    assert [number(ref) for ref in evidence_refs(pool, packing)] == [101]
    assert numbers(expand_evidence(pool, SOURCES, packing=packing).table) == [1, 2, 101]
