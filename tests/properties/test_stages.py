"""No stage depends on the order of rows that have none, and what ranks below all changes nothing above it."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.enums import NodeType, RetrievalMode
from prme_ray.model.settings import PackingSettings
from prme_ray.model.tables import channel, records, target_of, texts
from prme_ray.tokens import counter
from stages.costs import CachedLines
from stages.expand_episode import expand_episode
from stages.expand_evidence import expand_evidence
from stages.expand_session import expand_session
from stages.filter import filter_epistemic, filter_time, filter_types
from stages.merge import append_lexical, merge, merge_max_signals
from stages.pack import pack
from tests.conformance.tables import candidates_table, nodes_table, time
from tests.properties.pools import (
    FORMULAS,
    QUESTIONS,
    by_id,
    candidates,
    memories,
    name,
    scored,
    shuffled,
    window_table,
    windows,
)

few = settings(max_examples=30)
formulas = pytest.mark.parametrize("scoring", FORMULAS.values(), ids=FORMULAS)
QUESTION = st.sampled_from(QUESTIONS)
COSINE, BM25 = st.sampled_from([-0.2, 0.4, 0.4, 0.7]), st.sampled_from([0.5, 3.0, 3.0, 11.0])


@st.composite
def hits(draw, size, signal):
    """One channel's answer: ids, some unknown, and signals with ties; an id may come twice."""
    numbers = draw(st.lists(st.integers(0, size + 1), max_size=size + 2))
    return channel([name(number) for number in numbers], [draw(signal) for _ in numbers])


@few
@given(memories(), QUESTION, st.data())
def test_merge(given_nodes, question, data):
    nodes = nodes_table(given_nodes)
    size = len(given_nodes)
    tables = [data.draw(hits(size, signal)) for signal in (COSINE, COSINE, BM25, COSINE)]
    scans = [data.draw(hits(size, BM25)) for _ in range(2)]

    def run(shuffle):
        memories = shuffle(nodes)
        found = merge(*map(shuffle, tables), nodes=memories)
        return append_lexical(found, [shuffle(table) for table in scans], nodes=memories)

    (first, added), (second, again) = run(lambda table: table), run(lambda table: shuffled(table, data))
    assert again == added
    # Merged rows stand as first seen. Nothing else may differ, and scoring makes the lists the same.
    assert by_id(second) == by_id(first)
    for scoring in FORMULAS.values():
        expected, found = (scored(table, question, scoring).table for table in (first, second))
        assert records(found) == records(expected)


@few
@given(candidates(6), st.data())
def test_merge_of_query_passes(pool, data):
    whole = candidates_table(pool)
    first, other = (whole.filter(pa.array([data.draw(st.booleans()) for _ in pool], pa.bool_())) for _ in range(2))
    found = merge_max_signals(shuffled(first, data), [shuffled(other, data)])
    assert by_id(found) == by_id(merge_max_signals(first, [other]))


@few
@given(candidates(), st.sampled_from(RetrievalMode), st.data())
def test_filter(pool, mode, data):
    def run(rows):
        bounds = dict.fromkeys(["time_from", "time_to", "knowledge_at", "event_time_to"])
        rows = filter_time(rows, event_time_from=time("2026-02-01T10:00:00Z"), **bounds)
        rows, types = filter_types(rows, exclude_node_types=frozenset({NodeType.NOTE}), source_types=None)
        rows, states = filter_epistemic(rows, mode=mode, unverified_threshold=0.3)
        return by_id(rows), by_id(types), by_id(states)

    table = candidates_table(pool)
    assert run(shuffled(table, data)) == run(table)


@formulas
@few
@given(pool=candidates(), question=QUESTION, data=st.data())
def test_score(scoring, pool, question, data):
    table = candidates_table(pool)
    expected, found = scored(table, question, scoring), scored(shuffled(table, data), question, scoring)
    assert records(found.table) == records(expected.table)
    assert (found.current_state, found.applied) == (expected.current_state, expected.applied)


@settings(max_examples=60)
@given(candidates(6), memories(10), st.data())
def test_expand_session(pool, others, data):
    ranked = scored(candidates_table(pool)).table
    # A memory is a trigger's neighbour once, and may be the neighbour of several.
    pairs = [(node["id"], trigger) for node in others for trigger in texts(ranked, "node_id")]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=16) if pairs else st.just([]))
    offers = [(*pair, data.draw(st.integers(-2, 2))) for pair in chosen]

    def run(nodes, order):
        ids = texts(nodes, "node_id")
        rows = [(ids.index(node_id), trigger, offset) for node_id, trigger, offset in order]
        packing = PackingSettings(session_context_packing="adjacent", session_context_window=2)
        found = expand_session(ranked, window_table(target_of(nodes), rows), packing=packing)
        return records(found.table), found.added

    memory_table = nodes_table(others)
    assert run(shuffled(memory_table, data), data.draw(st.permutations(offers))) == run(memory_table, offers)


@settings(max_examples=80)
@given(candidates(10), st.data())
def test_expand_episode(pool, data):
    packing = PackingSettings(episode_context_top_k=2, episode_context_local_k=2)
    ranked = scored(candidates_table(pool)).table
    # Where nothing is lifted the list stays as it came; all else is decided by score and id.
    found = expand_episode("soup Anna", shuffled(ranked, data), packing=packing).table
    assert by_id(found) == by_id(expand_episode("soup Anna", ranked, packing=packing).table)


@pytest.mark.parametrize("kind", ["projection", "augmentation"])
@few
@given(pool=candidates(), sources=memories(4), data=st.data())
def test_expand_evidence(kind, pool, sources, data):
    packing = PackingSettings(**{f"evidence_{kind}_top_k": 3, f"evidence_{kind}_max_sources": 2})
    ranked = scored(candidates_table(pool)).table
    table = nodes_table(sources)
    expected = expand_evidence(ranked, table, packing=packing)
    found = expand_evidence(ranked, shuffled(table, data), packing=packing)
    assert records(found.table) == records(expected.table)
    assert (found.added, found.removed) == (expected.added, expected.removed)


@pytest.mark.parametrize("context_format", ["reader", "compact", "auditable"])
@few
@given(
    pool=candidates(),
    budget=st.integers(0, 600),
    ordering=st.sampled_from(["balanced", "density", "score"]),
    beside=st.sampled_from([None, "adjacent", "trigger_tier"]),
    data=st.data(),
)
def test_pack(context_format, pool, budget, ordering, beside, data):
    packing = PackingSettings(
        context_format=context_format,
        multipath_ordering=ordering,
        session_context_packing=beside,
        token_budget=budget,
        min_fidelity="reference",
        fold_repeated_text=context_format == "reader",
        overhead_tokens=0,
    )

    def run(rows):
        costs = CachedLines(packing, counter("cl100k_base"), {}, owner="ada")
        found = pack(rows, packing=packing, token_budget=budget, min_fidelity="reference", costs=costs)
        return found, list(found.sections)

    ranked = scored(candidates_table(pool)).table
    ranked = expand_session(ranked, windows(ranked), packing=packing).table
    assert run(shuffled(ranked, data)) == run(ranked)


def below(pool, number):
    """Return a candidate behind all others: on the same channels, weaker, older, of no better kind."""
    lowest = {"epistemic_type": "hypothetical", "node_type": "note", "created_at": "2020-01-01T00:00:00Z"}
    return {
        "node": {"id": name(1000 + number), "content": "nothing", "confidence": 0.0, "salience": 0.0, **lowest},
        "paths": ["VECTOR", "LEXICAL"],
        "path_count": 2,
        "semantic_score": -0.5 - number / 100,
        "lexical_score": -0.5 - number / 100,
        "graph_proximity": 0.0,
    }


@few
@given(st.lists(st.tuples(COSINE, BM25), max_size=6), st.integers(1, 3))
def test_hits_below_all_others_reorder_nothing_through_merge_and_fusion(signals, count):
    ids = [name(number) for number in range(len(signals) + count)]
    nodes = nodes_table([{"id": node_id, "created_at": "2026-01-01T00:00:00Z"} for node_id in ids])
    nothing = channel([], [])

    def order(size):
        lower = [(-0.5 - number / 10, 0.4 - number / 10) for number in range(count)]
        cosine, bm25 = zip(*[*signals, *lower][:size], strict=True) if size else ((), ())
        vector, lexical = channel(ids[:size], cosine), channel(ids[:size], bm25)
        found = texts(scored(merge(nothing, vector, lexical, nothing, nodes=nodes)).table, "node_id")
        return [node_id for node_id in found if node_id in ids[: len(signals)]]

    assert order(len(ids)) == order(len(signals))


@formulas
@few
@given(pool=candidates(), question=QUESTION, count=st.integers(1, 3))
def test_what_ranks_below_all_in_every_channel_reorders_nothing(scoring, pool, question, count):
    more = [below(pool, number) for number in range(count)]
    alone, together = (scored(candidates_table(given), question, scoring).table for given in (pool, pool + more))
    new = {item["node"]["id"] for item in more}
    assert [node_id for node_id in texts(together, "node_id") if node_id not in new] == texts(alone, "node_id")
