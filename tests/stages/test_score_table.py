import numpy as np
import pyarrow as pa

from prme_ray.model.tables import LINEAGE, SCORED, column, field_numbers, field_of, parts, texts
from stages.current_update import Boost, no_boost
from stages.score_table import path_scores, ranked
from tests.stages.scoring_pool import candidate, name, number, pool

COLUMNS = dict.fromkeys(
    [field.name for field in SCORED if field.name.startswith("trace_") and field.name != "trace_path"], 0.0
)


def order(base, path_score):
    table = pool(*(candidate(identity) for identity in (3, 1, 2)))
    scores = np.array(base)
    found = ranked(
        table, formula=2, base=scores, boost=no_boost(scores), path_score=np.array(path_score), columns=COLUMNS
    )
    return [number(item) for item in texts(found, "node_id")]


def test_score_then_path_score_then_id():
    assert order([0.1, 0.2, 0.3], [1.0, 1.0, 1.0]) == [2, 1, 3]
    assert order([0.2, 0.2, 0.2], [1.0, 0.5, 0.5]) == [3, 1, 2]
    assert order([0.2, 0.2, 0.2], [1.0, 1.0, 1.0]) == [1, 2, 3]


def test_columns_of_every_kind_follow_the_order():
    table = pool(*(candidate(identity) for identity in (1, 2, 3)))
    scores = np.array([0.1, 0.2, 0.3])
    raised = Boost(np.array([0.13, 0.2, 0.39]), np.array([0, 2]), np.array([1.3, 1.3]))
    found = ranked(
        table,
        formula=1,
        base=scores,
        boost=raised,
        path_score=path_scores(table),
        columns={
            **COLUMNS,
            "trace_semantic": np.array([1.0, 2.0, 3.0]),
            "semantic_rank": np.array([1, 0, 3], np.int32),
        },
    )
    assert found.schema == SCORED
    found.validate(full=True)
    assert texts(found, "node_id") == texts(found, "base_node_id") == [name(3), name(2), name(1)]
    assert texts(found, "base_score") == [0.3, 0.2, 0.1]
    assert texts(found, "trace_semantic") == [3.0, 2.0, 1.0]
    assert texts(found, "semantic_rank") == [3, None, 1]
    assert column(found, "tie_break").null_count == 3
    assert texts(found, "has_own_trace") == [True] * 3
    steps = [[step["source_node_id"] for step in row] for row in texts(found, "adjustments")]
    assert steps == [[name(3)], [], [name(1)]]


def test_path_scores_are_thirds_up_to_one():
    table = pool(*(candidate(identity, path_count=count) for identity, count in enumerate((0, 1, 3, 4))))
    assert path_scores(table).tolist() == [0.0, 1 / 3, 1.0, 1.0]


def test_kept_numbers_of_lineages_are_those_that_arrow_holds():
    table = pool(*(candidate(identity) for identity in (1, 2, 3)))
    scores = np.array([0.1, 0.2, 0.3])
    ranks = np.array([2, 0, 1], np.int32)
    found = ranked(
        table,
        formula=2,
        base=scores,
        boost=no_boost(scores),
        path_score=path_scores(table),
        columns={**COLUMNS, "semantic_rank": ranks, "tie_break": np.array([0.5, 0.0, 0.25]), "temporal_factor": 0.5},
    )
    _, lineages = parts(column(found, "lineage"))
    for field in LINEAGE:
        if pa.types.is_dictionary(field.type):
            assert field_of(lineages, field.name).equals(lineages.field(field.name))
        else:
            null = np.nan if pa.types.is_floating(field.type) else 0
            kept = field_numbers(lineages, field.name, null)
            held = lineages.field(field.name).to_pylist()
            assert not kept.flags.writeable
            assert np.array_equal(kept, [null if value is None else value for value in held], equal_nan=True)
