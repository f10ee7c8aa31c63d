"""A final score is recomputed bit for bit from the row that carries it, by both formulas, after every stage.

The arithmetic is digest b §3.4, written here in plain Python: what an auditor would write.
"""

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from prme_ray.model.enums import Adjustment, member
from prme_ray.model.settings import PackingSettings
from prme_ray.model.tables import LINEAGE, records, texts
from stages.expand_episode import expand_episode
from stages.expand_evidence import expand_evidence
from stages.expand_session import expand_session
from stages.rerank import rerank
from tests.conformance.tables import candidates_table, nodes_table
from tests.properties.pools import FORMULAS, QUESTIONS, by_id, candidates, memories, scored, windows

_NEURAL = [0.0, 0.125, 0.7, 0.7, 1.0]


def base_of(row, scoring, applied):
    """Return the base score that a row's trace, ranks and factors stand for."""
    if row["formula_version"] == 1:
        additive = (
            applied["w_semantic"] * row["trace_semantic"]
            + applied["w_lexical"] * row["trace_lexical"]
            + applied["w_graph"] * row["trace_graph"]
            + applied["w_recency"] * row["trace_recency"]
            + applied["w_salience"] * row["trace_salience"]
            + applied["w_confidence"] * row["trace_confidence"]
        )
        score = additive * row["trace_epistemic"]
        if scoring.temporal_boost > 0:
            score += scoring.temporal_boost * row["trace_temporal"]
        score *= row["trace_node_type"]
        relevance = row["trace_semantic"] + row["trace_lexical"]
        if scoring.relevance_floor > 0 and relevance < scoring.relevance_floor:
            score = min(score, relevance)
        return round(score, 10)
    parts = [
        0.0 if rank is None else 1 / (scoring.rrf_k + rank) for rank in (row["semantic_rank"], row["lexical_rank"])
    ]
    score = sum(parts) * (scoring.rrf_k + 1) / 2
    for factor in ("epistemic_factor", "node_type_factor", "temporal_factor", "recency_factor"):
        score *= 1.0 if row[factor] is None else row[factor]
    score = round(score, 10)
    return score - row["tie_break"] * 1e-11 if row["tie_break"] is not None and score > 0 else score


def replayed(row, scoring, applied):
    """Return the final score: the base score and every step, in order."""
    score = base_of(row, scoring, applied)
    assert score == row["base_score"]
    for step in row["adjustments"]:
        kind, coefficient = member(Adjustment, step["kind"]), step["coefficient"]
        if kind is Adjustment.NEURAL_BLEND:
            score = (1 - coefficient) * step["neural_score"] + coefficient * score
        elif kind is Adjustment.NEURAL_RANK_ASSIGNMENT:
            score = coefficient
        else:
            score *= coefficient
    return score


def check_sources(before, after):
    """Check that what a context stage gave is a share of the score, and the lineage, of the memory it names."""
    for node_id, row in after.items():
        if node_id in before and row["adjustments"] == before[node_id]["adjustments"]:
            assert row["composite_score"] == before[node_id]["composite_score"]
            continue
        *steps, last = row["adjustments"]
        source = before[last["source_node_id"]]
        assert row["composite_score"] == source["composite_score"] * last["coefficient"]
        assert steps == source["adjustments"]
        assert not row["has_own_trace"]
        assert [row[name] for name in LINEAGE.names] == [source[name] for name in LINEAGE.names]


@pytest.mark.parametrize("scoring", FORMULAS.values(), ids=FORMULAS)
@settings(max_examples=60)
@given(
    pool=candidates(10, fine=True),
    question=st.sampled_from(QUESTIONS),
    policy=st.sampled_from([None, "legacy", "score_envelope", "anchored_score_envelope"]),
    kind=st.sampled_from(["projection", "augmentation"]),
    sources=memories(3),
    data=st.data(),
)
def test_every_score_is_what_its_lineage_says(scoring, pool, question, policy, kind, sources, data):
    found = scored(candidates_table(pool), question, scoring)
    table = found.table
    if policy is not None:
        best = texts(table.slice(0, 4), "node_id")
        neural = {node_id: data.draw(st.sampled_from(_NEURAL)) for node_id in best}
        table = rerank(table, neural, policy=policy, prior_weight=0.3, top_k=4)
    packing = PackingSettings(
        episode_context_top_k=2,
        episode_context_local_k=2,
        session_context_top_k=3,
        **{f"evidence_{kind}_top_k": 3, f"evidence_{kind}_max_sources": 2},
    )
    # Half of each conversation is known already, the other half is brought in.
    known = table.slice(0, (table.num_rows + 1) // 2)
    stages = [
        lambda before: expand_session(before, windows(table), packing=packing).table,
        lambda before: expand_episode("soup Anna", before, packing=packing).table,
        lambda before: expand_evidence(before, nodes_table(sources), packing=packing).table,
    ]
    after = known
    for stage in stages:
        before, after = after, stage(after)
        check_sources(by_id(before), by_id(after))
    rows = records(after)
    assert [replayed(row, scoring, found.applied) for row in rows] == [row["composite_score"] for row in rows]
    for row in rows:
        assert row["base_node_id"] == row["node_id"] or not row["has_own_trace"]


def kinds_of(pool, sources):
    """Return the kinds of step that a pool comes to with every stage on."""
    table = scored(candidates_table(pool), "Where does Anna live now?").table
    neural = dict.fromkeys(texts(table, "node_id"), 0.5)
    table = rerank(table, neural, policy="score_envelope", prior_weight=0.3, top_k=len(neural))
    packing = PackingSettings(episode_context_top_k=2)
    table = expand_session(table.slice(0, 3), windows(table), packing=packing).table
    table = expand_episode("soup Anna", table, packing=packing).table
    found = set()
    for kind in ("projection", "augmentation"):
        packing = PackingSettings(**{f"evidence_{kind}_top_k": 3})
        rows = records(expand_evidence(table, nodes_table(sources), packing=packing).table)
        found.update(member(Adjustment, step["kind"]) for row in rows for step in row["adjustments"])
    return found


@pytest.mark.parametrize("kind", list(Adjustment))
def test_the_pools_reach_every_kind_of_step(kind):
    """The property above is worth what its pools reach."""
    pools = st.tuples(candidates(10), memories(3))
    quick = settings(max_examples=1000, phases=[Phase.generate], database=None)
    find(pools, lambda drawn: kind in kinds_of(*drawn), settings=quick)
