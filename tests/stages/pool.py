"""Short spellings for small tables: memory number n has the UUID of int n."""

from uuid import UUID

from prme_ray.model.tables import records, texts
from tests.conformance.tables import nodes_table, scored_table


def uid(number):
    return str(UUID(int=number))


def number(node_id):
    return UUID(node_id).int


def nodes(*memories):
    """Return a NODE table; a memory is its number, or a dict with ``n`` and node fields."""
    return nodes_table([_node(item) for item in memories])


def scored(*hits):
    """Return a SCORED table in the order given: dicts with ``n``, ``score``, and what differs from a vector hit."""
    return scored_table([_hit(dict(item)) for item in hits])


def numbers(table):
    return [number(node_id) for node_id in texts(table, "node_id")]


def by_number(table):
    return {number(row["node_id"]): row for row in records(table)}


def _node(item):
    given = dict(item) if isinstance(item, dict) else {"n": item}
    refs = given.pop("evidence", ())
    return {"id": uid(given.pop("n")), "evidence_refs": [uid(ref) for ref in refs], **given}


def _hit(given):
    score = given.pop("score")
    own = {
        name: given.pop(name) for name in ("reranker_score", "semantic_relevance", "context_relevance") if name in given
    }
    cosine = given.pop("cosine", 0.0)
    paths = given.pop("paths", ["VECTOR"])
    formula = given.pop("formula", 2)
    adjustments = given.pop("adjustments", [])
    node = _node(given)
    provenance = {
        "formula_version": formula,
        "base_node_id": node["id"],
        "base_score": score,
        "semantic_similarity": cosine,
        "adjustments": adjustments,
    }
    return {
        "node": node,
        "paths": paths,
        "path_count": len(paths),
        "semantic_score": cosine,
        "composite_score": score,
        "provenance": provenance,
        **own,
    }
