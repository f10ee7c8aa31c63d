"""Alternate queries: which are asked, and how their finds join the question's."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.request import make_request
from prme_ray.model.settings import Settings
from prme_ray.model.tables import records
from prme_ray.steps.alternates import add_alternates, plan_alternate, reformulate
from prme_ray.steps.generate import analyze, plan
from prme_ray.steps.values import Kept
from tests.memory.tools import START
from tests.stages.pool import by_number, numbers, uid
from tests.stages.test_merge import merged

SIGNALS = ("semantic_score", "lexical_score", "graph_proximity")
WORDS = st.lists(st.text("aAbß \t", max_size=4), max_size=8)
HITS = st.dictionaries(st.integers(1, 8), st.floats(0, 1), max_size=6)


def settings(**changes):
    return Settings(reformulation={"enabled": True, **changes})


def request(query="who is Ana?", **options):
    return make_request(query, request_id=uid(1), tenant="t", owner="o", now=START, settings=Settings(), **options)


def wordings(given, query="who", **changes):
    return [alternate.query for alternate in reformulate(lambda *_: given, request(query), settings(**changes))]


def test_blank_repeated_and_echoed_wordings_are_dropped_before_the_count():
    given = [" ", "WHO", "tea pot", "Tea  Pot", "STRASSE", "straße", "late", "last"]
    assert wordings(given, count=3) == ["tea pot", "STRASSE", "late"]


def test_it_is_asked_with_the_question_and_the_count_and_only_when_on():
    asked = []
    reformulate(lambda *arguments: asked.append(arguments) or [], request("who"), settings(count=4))
    reformulate(lambda *arguments: asked.append(arguments) or [], request(" \n"), settings())
    assert reformulate(None, request("who"), Settings()) == ()
    assert asked == [("who", 4)]


@pytest.mark.parametrize("given", [None, "one text", [None], ["fine", 5], ["a\x00b"], ["\ud800"]])
def test_whatever_is_no_sequence_of_texts_gives_none_and_is_logged_without_words(given, caplog):
    with caplog.at_level(logging.WARNING, "prme_ray.retrieve"):
        assert wordings(given, query="secret") == []
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


def test_a_rewriter_that_raises_gives_none(caplog):
    def ask(query, count):
        raise TimeoutError(query)

    assert reformulate(ask, request("secret"), settings()) == ()
    assert "TimeoutError" in caplog.text
    assert "secret" not in caplog.text


@given(WORDS, st.text("aAbß ", min_size=1, max_size=4), st.integers(1, 5))
def test_what_is_kept_is_new_to_the_eye(given, query, count):
    kept = wordings(given, query, count=count)
    folded = [" ".join(text.split()).casefold() for text in [query, *kept]]
    assert len(set(folded)) == len(folded) <= count + 1
    assert all(folded[1:])
    rest = iter(text.strip() for text in given)
    assert all(text in rest for text in kept), "the order is the rewriter's"


def test_an_alternate_is_the_request_in_other_words():
    first = request("How many cats has Ana?", scope="project", time_from="2026-01-01T00:00:00Z", limit=3)
    order = plan(first, analyze(first, Settings()))
    (other,) = reformulate(lambda *_: ["pets of Ben Okri since 2020"], first, settings())
    assert (other.query, other.scopes, other.reference_time) == (
        "pets of Ben Okri since 2020",
        first.scopes,
        first.reference_time,
    )
    narrowed = plan_alternate(other, order)
    assert (narrowed.names, narrowed.keywords) == (("Ben Okri",), ())
    assert narrowed.filters == order.filters
    assert narrowed.vector_k == order.vector_k > request().packing.vector_k, "widened as the question's"


def vector_pass(hits):
    return merged(vector=hits.items())


@given(HITS, st.lists(HITS, max_size=3))
def test_new_only_leaves_what_the_question_found(question, others):
    first = Kept(vector_pass(question), counts={"VECTOR": len(question)})
    passes = [vector_pass(hits) for hits in others]
    found = add_alternates(first, passes, settings())
    assert records(found.table.slice(0, len(question))) == records(first.table)
    assert numbers(found.table) == list(dict.fromkeys(number for hits in [question, *others] for number in hits))
    added = found.table.num_rows - len(question)
    assert found.counts == {"VECTOR": len(question), **({"REFORMULATION": added} if added else {})}


@given(HITS, st.lists(HITS, max_size=3))
def test_max_signals_takes_the_largest_of_all_searches(question, others):
    first = Kept(vector_pass(question), counts={})
    found = add_alternates(first, [vector_pass(hits) for hits in others], settings(merge="max_signals"))
    largest = {}
    for hits in [question, *others]:
        for number, signal in hits.items():
            largest[number] = max(signal, largest.get(number, 0.0))
    assert {number: row["semantic_score"] for number, row in by_number(found.table).items()} == largest


def test_paths_of_several_searches_are_counted_once():
    first = Kept(merged(vector=[(1, 0.5)], pinned=[1]), counts={})
    other = merged(lexical=[(1, 2.0)], pinned=[1])
    (row,) = by_number(add_alternates(first, [other], settings(merge="max_signals")).table).values()
    assert (row["path_count"], [row[name] for name in SIGNALS]) == (3, [0.5, 1.0, 0.0])


def test_a_failed_search_adds_nothing_or_fails_the_request():
    first = Kept(vector_pass({1: 0.5}), counts={})
    passes = [vector_pass({2: 0.5}), ConnectionError("down"), vector_pass({3: 0.5})]
    assert numbers(add_alternates(first, passes, settings()).table) == [1, 2, 3]
    with pytest.raises(ConnectionError, match="down"):
        add_alternates(first, passes, settings(merge="max_signals"))


def test_two_snapshots_are_never_mixed():
    first = Kept(vector_pass({1: 0.5}), counts={})
    other = merged(vector=[(1, 0.5)], known=({"n": 1, "content": "edited"},))
    with pytest.raises(InvalidRequest, match=uid(1)):
        add_alternates(first, [other], settings(merge="max_signals"))
