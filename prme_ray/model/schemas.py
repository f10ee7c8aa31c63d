"""Arrow schemas of everything that crosses a stage or a process border.

::

    CHANNEL ──merge──► CANDIDATE ──filter──► CANDIDATE ──score──► SCORED ──expand/select──► SCORED
       NODE ──┘

* ``CHANNEL``: what one retrieval channel answers: ids and one raw signal, best first.
* ``NODE``: a memory as the stages see it.
* ``CANDIDATE``: a reference to a ``NODE`` row, and the channels' signals.
* ``SCORED``: ``CANDIDATE`` plus score, and a reference to the lineage of the score.
* ``EXCLUSION``: a memory that was left out, and why.

References are Arrow dictionary columns: ``node`` indexes a struct array of ``NODE`` rows, ``lineage``
one of lineages. So the stages sort and cut fifteen narrow columns instead of sixty, memories are
copied for nobody, and a score that a memory inherits *is* its trigger's lineage. :func:`column` and
its typed forms read through a reference: ``texts(table, "content")`` works on every table here.

Enum columns hold ``int8`` codes (:mod:`prme_ray.model.enums`); ``paths`` is a bit mask of
:class:`~prme_ray.model.enums.Path`. Ids are lower-case hyphenated UUID strings and sort as strings.
Columns are never null unless the schema says so.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["ADJUSTMENT", "CANDIDATE", "CHANNEL", "EXCLUSION", "LINEAGE", "NODE", "SCORED", "SIGNALS", "TRACE"]

_TIME = pa.timestamp("us", tz="UTC")


def _field(name: str, kind: Any, nullable: bool = False) -> Any:
    return pa.field(name, kind, nullable=nullable)


CHANNEL = pa.schema([_field("node_id", pa.dictionary(pa.int32(), pa.string())), _field("signal", pa.float64())])
"""``signal``: cosine (vector), BM25 (lexical), proximity 1.0/0.7/0.4 (graph), 1.0 (pinned)."""

NODE = pa.schema(
    [
        _field("node_id", pa.string()),
        _field("session_id", pa.string(), nullable=True),
        _field("scope", pa.int8()),
        _field("node_type", pa.int8()),
        _field("content", pa.string()),
        _field("epistemic_type", pa.int8()),
        _field("source_type", pa.int8()),
        _field("lifecycle_state", pa.int8()),
        _field("decay_profile", pa.int8()),
        _field("confidence", pa.float64()),
        _field("salience", pa.float64()),
        _field("confidence_base", pa.float64()),
        _field("salience_base", pa.float64()),
        _field("reinforcement_boost", pa.float64()),
        _field("created_at", _TIME),
        _field("updated_at", _TIME),
        _field("event_time", _TIME, nullable=True),
        _field("valid_from", _TIME),
        _field("valid_to", _TIME, nullable=True),
        _field("last_reinforced_at", _TIME),
        _field("superseded_by", pa.string(), nullable=True),
        _field("pinned", pa.bool_()),
        # Raw metadata.condition_state; null when absent or not a string.
        _field("condition_state", pa.string(), nullable=True),
        # Valid stored speaker name, else null.
        _field("speaker", pa.string(), nullable=True),
        # Evidence ids (source events), sorted and joined by ","; "" for none.
        _field("evidence", pa.string()),
        # Caller's metadata as JSON text.
        _field("metadata", pa.string(), nullable=True),
        # prme_ray.model.wording, computed at admission.
        _field("dated", pa.bool_()),
        _field("update_wording", pa.bool_()),
    ]
)

SIGNALS = ("semantic_score", "lexical_score", "graph_proximity")
"""Columns of the channels' signals."""

_MERGED = [
    _field("paths", pa.int16()),
    _field("path_count", pa.int16()),
    # Cosine; components of a merge start from 0.0, so negative cosines become 0.0.
    _field("semantic_score", pa.float64()),
    # BM25, min-max normalised per query, in [0, 1].
    _field("lexical_score", pa.float64()),
    # 1.0, 0.7 or 0.4 for one, two or three hops; 0.0 off the graph.
    _field("graph_proximity", pa.float64()),
]

_NODES = pa.struct(list(NODE))
CANDIDATE = pa.schema([_field("node", pa.dictionary(pa.int32(), _NODES)), *_MERGED])

ADJUSTMENT = pa.struct(
    [
        _field("kind", pa.int8()),
        _field("coefficient", pa.float64()),
        _field("source_node_id", pa.string()),
        _field("neural_score", pa.float64(), nullable=True),
    ]
)

LINEAGE = pa.schema(
    [
        # 1 weighted, 2 rank fusion; whose base score this is; the base score itself.
        _field("formula_version", pa.int8()),
        # A reference as well: hundreds of ids are never copied to say that a score is a memory's own.
        _field("base_node_id", pa.dictionary(pa.int32(), pa.string())),
        _field("base_score", pa.float64()),
        # The trace of the base node (digest a §1.4). For an inherited score: the trigger's trace.
        _field("trace_semantic", pa.float64()),
        _field("trace_lexical", pa.float64()),
        _field("trace_graph", pa.float64()),
        _field("trace_recency", pa.float64()),
        _field("trace_salience", pa.float64()),
        _field("trace_confidence", pa.float64()),
        _field("trace_epistemic", pa.float64()),
        _field("trace_path", pa.float64()),
        _field("trace_temporal", pa.float64()),
        _field("trace_node_type", pa.float64()),
        # Rank fusion only (formula 2).
        _field("semantic_rank", pa.int32(), nullable=True),
        _field("lexical_rank", pa.int32(), nullable=True),
        _field("epistemic_factor", pa.float64(), nullable=True),
        _field("node_type_factor", pa.float64(), nullable=True),
        _field("temporal_factor", pa.float64(), nullable=True),
        _field("recency_factor", pa.float64(), nullable=True),
        _field("tie_break", pa.float64(), nullable=True),
    ]
)
"""How a base score came about: one row a scored memory; an inherited score refers to its trigger's."""

TRACE = {
    "trace_semantic": "semantic_similarity",
    "trace_lexical": "lexical_relevance",
    "trace_graph": "graph_proximity",
    "trace_recency": "recency_factor",
    "trace_salience": "salience",
    "trace_confidence": "confidence",
    "trace_epistemic": "epistemic_weight",
    "trace_path": "path_score",
    "trace_temporal": "temporal_affinity",
    "trace_node_type": "node_type_boost",
    "base_score": "composite_score",
}
"""Columns of ``LINEAGE`` -> names in responses and receipts, in their order there."""

SCORED = pa.schema(
    [
        *CANDIDATE,
        _field("composite_score", pa.float64()),
        # Largest relevance of the memories that brought this one in as context; working state.
        _field("context_relevance", pa.float64()),
        # Rank fusion only: what min_score is compared with. Null until computed.
        _field("semantic_relevance", pa.float64(), nullable=True),
        # False when the score was inherited (the lineage is then another node's).
        _field("has_own_trace", pa.bool_()),
        _field("reranker_score", pa.float64(), nullable=True),
        _field("session_trigger_id", pa.string(), nullable=True),
        _field("session_offset", pa.int32(), nullable=True),
        _field("contradicts_id", pa.string(), nullable=True),
        _field("lineage", pa.dictionary(pa.int32(), pa.struct(list(LINEAGE)))),
        # Steps from the base score to the composite score, in the order applied.
        _field("adjustments", pa.list_(pa.field("item", ADJUSTMENT, nullable=False))),
    ]
)

EXCLUSION = pa.schema(
    [
        _field("node_id", pa.string()),
        _field("reason", pa.string()),
        _field("composite_score", pa.float64(), nullable=True),
        _field("semantic_relevance", pa.float64(), nullable=True),
    ]
)
