"""Episode context; the BM25 figures are digest a section 12, case 42."""

import pytest

from prme_ray.model.enums import Scope, path_names
from prme_ray.model.settings.packing import PackingSettings
from stages.expand_episode import bm25, expand_episode, rank_episodes, terms
from tests.conformance.tables import adjustments
from tests.stages.pool import by_number, numbers, scored, uid

POOL = scored(
    {"n": 1, "score": 0.9, "content": "a red car", "session_id": "s1", "cosine": 0.3},
    {"n": 2, "score": 0.8, "content": "nothing here", "session_id": "s2", "cosine": 0.7},
    {"n": 3, "score": 0.5, "content": "blue bike ride", "session_id": "s2", "cosine": 0.1},
    {"n": 4, "score": 0.4, "content": "blue bike", "session_id": "s2", "scope": "project"},
    {"n": 5, "score": 0.3, "content": "the bike again", "session_id": "s2"},
    {"n": 6, "score": 0.2, "content": "tea", "session_id": "s1"},
    {"n": 7, "score": 0.1, "content": "blue bike"},
)


def packing(**settings):
    return PackingSettings(**{f"episode_context_{name}": value for name, value in {"top_k": 1, **settings}.items()})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("It's snake_case!", ["it", "s", "snake", "case"]),
        ("STRASSE Straße Ünï 北京7", ["strasse", "strasse", "ünï", "北京7"]),
    ],
)
def test_terms(text, found):
    assert terms(text) == found


def test_bm25_scores():
    documents = [terms(text) for text in ("blue bike ride", "red bike", "nothing here at all")]
    expected = [1.4508328823, 0.5529454462, 0.0]
    assert bm25(terms("blue bike"), documents) == pytest.approx(expected, abs=1e-10)
    assert bm25(terms("blue bike bike"), documents) == bm25(terms("blue bike"), documents)
    assert bm25(["blue"], [[], []]) == [0.0, 0.0]
    assert bm25(["blue"], []) == []


def test_an_episode_is_a_session_in_a_scope_with_two_candidates():
    found = rank_episodes("blue bike", POOL)
    assert [(episode.scope, episode.session_id, episode.rows) for episode in found] == [
        (Scope.PERSONAL, "s2", (1, 2, 4)),
        (Scope.PERSONAL, "s1", (0, 5)),
    ]
    assert found[1].score == 0.0


def test_equal_episodes_stand_by_scope_name_then_session():
    places = [("project", "a"), ("agent", "c"), ("agent", "b")]
    hits = [{"session_id": session, "scope": scope, "content": "blue"} for scope, session in places for _ in range(2)]
    found = rank_episodes("blue", scored(*({"n": n, "score": 0.5, **item} for n, item in enumerate(hits))))
    assert [(episode.scope, episode.session_id) for episode in found] == [
        (Scope.AGENT, "b"),
        (Scope.AGENT, "c"),
        (Scope.PROJECT, "a"),
    ]


def test_the_best_records_of_the_best_episode_rise_to_its_best_score():
    table = expand_episode("blue bike", POOL, packing=packing(local_k=2)).table
    assert numbers(table) == [1, 2, 3, 5, 4, 6, 7]
    rows = by_number(table)
    assert [rows[n]["composite_score"] for n in (2, 3, 5)] == [0.8, 0.8 * 0.95, 0.8 * 0.95]
    assert path_names(rows[3]["paths"]) == ("VECTOR", "EPISODE_CONTEXT")
    assert [rows[n]["path_count"] for n in (2, 3, 5)] == [1, 2, 2]
    assert (rows[3]["context_relevance"], rows[3]["base_node_id"], rows[3]["has_own_trace"]) == (0.7, uid(2), False)
    assert adjustments(rows[3]) == [{"kind": "episode_decay", "coefficient": 0.95, "source_node_id": uid(2)}]


def test_a_record_that_is_better_by_itself_keeps_its_score():
    rows = by_number(expand_episode("blue bike", POOL, packing=packing(score_decay=0.5)).table)
    assert (rows[3]["composite_score"], rows[3]["has_own_trace"]) == (0.5, True)
    # The anchor is routed to as well, by its place in the episode, whatever its words.
    assert rows[2]["path_count"] == 2


@pytest.mark.parametrize("query", ["", "zzz", "!?"])
def test_a_question_without_a_match_changes_nothing(query):
    assert expand_episode(query, POOL, packing=packing()).table is POOL


def test_off_and_empty():
    assert expand_episode("blue bike", POOL, packing=packing(top_k=0)).table is POOL
    assert expand_episode("blue bike", scored(), packing=packing()).table.num_rows == 0
