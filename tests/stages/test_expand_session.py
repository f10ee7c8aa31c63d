"""Session context; the main case is digest a section 12, 39 to 41: turns 1 to 8, hits 4, 50 and 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.enums import path_names
from prme_ray.model.settings.packing import PackingSettings
from prme_ray.model.tables import SCORED, records, texts
from stages.expand_session import expand_session, session_triggers
from tests.conformance.tables import adjustments, windows_table
from tests.stages.pool import by_number, nodes, number, numbers, scored, uid

TURN = {"session_id": "s1"}
HITS = scored(
    {"n": 4, "score": 1.0, "cosine": 0.9, "paths": ["VECTOR", "LEXICAL"], **TURN},
    {"n": 50, "score": 0.98, "cosine": 0.8},
    {"n": 1, "score": 0.96, "cosine": 0.2, "paths": ["VECTOR", "LEXICAL"], **TURN},
)


def packing(**settings):
    return PackingSettings(**{f"session_context_{name}": value for name, value in settings.items()})


def windows(*rows):
    """Return windows from (trigger, neighbour, offset)."""
    table = nodes(*({"n": n, **TURN} for _, n, _ in rows))
    return windows_table(table, [uid(trigger) for trigger, _, _ in rows], [offset for _, _, offset in rows])


def around(trigger, width=3, last=8):
    return [(trigger, n, n - trigger) for n in range(max(1, trigger - width), min(last, trigger + width) + 1)]


ALL = windows(*around(1), *reversed(around(4)))


def test_triggers_are_the_first_rows_that_have_a_session():
    table = session_triggers(HITS, packing=PackingSettings())
    assert texts(table, "trigger_id") == [uid(4), uid(1)]
    # Row 2 of the first two has no session; the row behind them is no trigger instead.
    assert session_triggers(HITS, packing=packing(top_k=2)).column("trigger_id").to_pylist() == [uid(4)]


@pytest.mark.parametrize("off", [{"window": 0}, {"top_k": 0}])
def test_off_means_no_triggers_and_the_same_table(off):
    assert session_triggers(HITS, packing=packing(**off)).num_rows == 0
    found = expand_session(HITS, ALL, packing=packing(**off))
    assert found.table is HITS
    assert not found.changed


def test_neighbours_stand_at_the_decayed_score_in_id_order():
    found = expand_session(HITS, ALL, packing=PackingSettings())
    assert numbers(found.table) == [4, 50, 1, 2, 3, 5, 6, 7]
    assert [number(node_id) for node_id in found.added] == [2, 3, 5, 6, 7]
    rows = by_number(found.table)
    assert [rows[n]["composite_score"] for n in (4, 50, 1, 2, 7)] == [1.0, 0.98, 0.96, 0.6, 0.6]
    assert path_names(rows[2]["paths"]) == ("SESSION_CONTEXT",)
    # Both triggers stand in the other's window: they gain the path, which does not count.
    assert path_names(rows[1]["paths"]) == ("VECTOR", "LEXICAL", "SESSION_CONTEXT")
    assert [rows[n]["path_count"] for n in (4, 1, 2)] == [2, 2, 1]


def test_an_inherited_score_carries_the_triggers_lineage():
    row = by_number(expand_session(HITS, ALL, packing=PackingSettings()).table)[2]
    assert row["context_relevance"] == 0.9
    assert (row["semantic_score"], row["has_own_trace"], row["semantic_relevance"]) == (0.0, False, None)
    assert (row["base_node_id"], row["base_score"], row["trace_semantic"]) == (uid(4), 1.0, 0.9)
    assert adjustments(row) == [{"kind": "session_decay", "coefficient": 0.6, "source_node_id": uid(4)}]


def test_weighted_scores_have_their_own_decay_and_can_lift_a_hit():
    extra = {"formula": 1, "reranker_score": 0.1}
    weighted = scored(
        {"n": 4, "score": 0.52, **TURN, **extra},
        {"n": 50, "score": 0.405, **extra},
        {"n": 1, "score": 0.3, **TURN, **extra},
    )
    found = expand_session(weighted, ALL, packing=PackingSettings())
    assert numbers(found.table) == [4, 1, 2, 3, 5, 6, 7, 50]
    row = by_number(found.table)[1]
    assert row["composite_score"] == 0.52 * 0.85
    assert (row["has_own_trace"], row["reranker_score"], row["base_node_id"]) == (False, None, uid(4))
    assert by_number(found.table)[4]["reranker_score"] == 0.1
    plain = packing(rank_fusion_score_decay=None)
    assert by_number(expand_session(HITS, ALL, packing=plain).table)[2]["composite_score"] == 0.85


def test_session_packing_counts_the_path_and_links_neighbours():
    rows = by_number(expand_session(HITS, windows(*around(4)), packing=packing(packing="adjacent", top_k=1)).table)
    assert (rows[1]["path_count"], rows[1]["session_offset"], rows[1]["session_trigger_id"]) == (3, -3, uid(4))
    assert [rows[n]["session_offset"] for n in (2, 3, 5, 6, 7)] == [-2, -1, 1, 2, 3]
    assert (rows[4]["session_trigger_id"], rows[4]["session_offset"], rows[4]["path_count"]) == (None, None, 2)
    both = by_number(expand_session(HITS, ALL, packing=packing(packing="trigger_tier")).table)
    # Turn 2 is a neighbour of both: the better ranked trigger keeps the link. Triggers have none.
    assert (both[2]["session_trigger_id"], both[2]["session_offset"]) == (uid(4), -2)
    assert both[1]["session_trigger_id"] is None


def test_of_equal_offers_the_better_ranked_trigger_gives_the_lineage():
    hits = scored({"n": 2, "score": 0.5, **TURN}, {"n": 1, "score": 0.5, **TURN})
    found = expand_session(hits, windows((1, 9, 1), (2, 9, -1)), packing=PackingSettings())
    assert by_number(found.table)[9]["base_node_id"] == uid(2)


def test_without_a_better_offer_the_order_stays():
    # After re-ranking a list need not fall; nothing may sort it that changed no score.
    hits = scored({"n": 1, "score": 0.2, **TURN}, {"n": 2, "score": 0.9, **TURN})
    found = expand_session(hits, windows((1, 2, 1)), packing=PackingSettings())
    assert numbers(found.table) == [1, 2]
    assert path_names(by_number(found.table)[2]["paths"]) == ("VECTOR", "SESSION_CONTEXT")
    assert (found.added, found.changed) == ((), True)


def test_windows_of_the_trigger_alone_or_of_others_change_nothing():
    assert expand_session(HITS, windows((4, 4, 0), (50, 9, 1)), packing=PackingSettings()).table is HITS
    assert expand_session(HITS, windows(), packing=PackingSettings()).table is HITS
    assert expand_session(scored(), windows(), packing=PackingSettings()).table.num_rows == 0


def plainly(hits, offers, decay):
    """Return id to (score, base, relevance) by walking the triggers in rank order, as the digest words it."""
    state = {n: (score, n, max(0.0, cosine)) for n, score, cosine in hits}
    at_start = dict(state)
    for trigger, *_ in hits:
        score, _, near = at_start[trigger]
        for origin, neighbour, _ in offers:
            if origin != trigger or neighbour == trigger:
                continue
            mine = state.get(neighbour, (-1.0, None, 0.0))
            better = score * decay > mine[0]
            state[neighbour] = (
                score * decay if better else mine[0],
                trigger if better else mine[1],
                max(mine[2], near),
            )
    return state


hit = st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]), st.sampled_from([-0.2, 0.0, 0.4, 0.8]))


@given(
    st.lists(hit, min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 10), st.sampled_from([-2, -1, 1, 2])), max_size=15),
    st.randoms(use_true_random=False),
)
def test_agrees_with_a_walk_over_the_triggers(hits, offers, random):
    hits = [(n + 1, score, cosine) for n, (score, cosine) in enumerate(hits)]
    offers = [offer for offer in offers if offer[0] != offer[1]]
    random.shuffle(offers)
    table = scored(*({"n": n, "score": score, "cosine": cosine, **TURN} for n, score, cosine in hits))
    found = expand_session(table, windows(*offers), packing=packing(packing="adjacent", top_k=3)).table
    found.validate(full=True)
    assert found.schema == SCORED
    triggers = {n for n, *_ in hits[:3]}
    expected = plainly(hits, [offer for offer in offers if offer[0] in triggers], 0.6)
    rows = by_number(found)
    assert {
        n: (
            row["composite_score"],
            number(row["base_node_id"]),
            max(0.0, row["semantic_score"], row["context_relevance"]),
        )
        for n, row in rows.items()
    } == expected
    if any(row["has_own_trace"] is False for row in rows.values()):
        ranked = [(-row["composite_score"], row["node_id"]) for row in records(found)]
        assert ranked == sorted(ranked)
