"""Golden file ``merge``: channel merge, keyword sets and alternate queries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from prme_ray.model.enums import path_names
from prme_ray.model.tables import channel, column, floats, records, texts
from stages.merge import merge, merge_max_signals, merge_term_sets, normalise_bm25
from tests.conformance.tables import candidates_table, nodes_table

_SIGNALS = ("path_count", "semantic_score", "lexical_score", "graph_proximity")


def _hits(given: list[dict[str, Any]], signal: str) -> pa.Table:
    return channel([hit["node_id"] for hit in given], [hit[signal] for hit in given])


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {"id": row["node_id"], "paths": list(path_names(row["paths"])), **{name: row[name] for name in _SIGNALS}}
        for row in records(table)
    ]


def _unresolved_renamed(hits: list[dict[str, Any]], resolvable: list[str]) -> list[dict[str, Any]]:
    return [hit if hit["node_id"] in resolvable else {**hit, "node_id": f"gone-{hit['node_id']}"} for hit in hits]


def _merge(given: dict[str, Any]) -> dict[str, Any]:
    lexical = _hits(given["lexical"], "bm25")
    pinned = channel(given["pinned"], [1.0] * len(given["pinned"]))
    graph = _hits(given["graph"], "proximity")
    # In the file, graph and pinned bring their memories and only the indexes' ids may fail to resolve.
    # Our nodes are one table, so an index hit that does not resolve is put as an id that nobody has.
    known = {*given["resolvable"], *texts(graph, "node_id"), *given["pinned"]}
    nodes = nodes_table([{"id": node_id} for node_id in sorted(known)])
    vector_hits, lexical_hits = (
        _unresolved_renamed(given[name], given["resolvable"]) for name in ("vector", "lexical")
    )
    found = merge(graph, _hits(vector_hits, "similarity"), _hits(lexical_hits, "bm25"), pinned, nodes=nodes)
    normalised = normalise_bm25(floats(lexical, "signal")).tolist()
    return {
        "lexical_normalised": [
            {"node_id": hit["node_id"], "normalised": value}
            for hit, value in zip(given["lexical"], normalised, strict=True)
        ],
        "merged": _rows(found),
    }


def _term_sets(given: dict[str, Any]) -> dict[str, Any]:
    hits = [hit for one in given["term_sets"] for hit in one]
    nodes = nodes_table([{"id": node_id} for node_id in sorted({hit["node_id"] for hit in hits})])
    where, kept, values = merge_term_sets(
        [_hits(one, "bm25") for one in given["term_sets"]], node_ids=column(nodes, "node_id")
    )
    ids = texts(nodes, "node_id")
    return {
        "merged": [
            {"node_id": ids[row], "normalised": value, "bm25": hits[hit]["bm25"]}
            for row, hit, value in zip(where.tolist(), kept.tolist(), values.tolist(), strict=True)
        ]
    }


def _max_signals(given: dict[str, Any]) -> dict[str, Any]:
    passes = [given["first_pass"], *given["alternate_passes"]]
    tables = [candidates_table([{**item, "node": {"id": item["id"]}} for item in one]) for one in passes]
    merged = _rows(merge_max_signals(tables[0], tables[1:]))
    # The file sorts path names and counts a row whose names had to be reordered as changed.
    for row in merged:
        row["paths"] = sorted(row["paths"])
    before = {item["id"]: item for item in given["first_pass"]}
    return {
        "merged": merged,
        "added_ids": sorted(row["id"] for row in merged if row["id"] not in before),
        "changed_existing_ids": sorted(row["id"] for row in merged if row["id"] in before and row != before[row["id"]]),
    }


def actual(case: dict[str, Any]) -> dict[str, Any]:
    """Run the stage on one case."""
    given = case["given"]
    if "term_sets" in given:
        return _term_sets(given)
    return _max_signals(given) if "first_pass" in given else _merge(given)
