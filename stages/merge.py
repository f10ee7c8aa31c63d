"""Stage 3: the channels' answers become one candidate table (RFC-0005 §4, digest a section 4).

::

    graph ──┐
    vector ─┼─ same id, one row: paths joined, each signal's maximum ──► CANDIDATE
    lexical ┤        (BM25 normalised over its own result set first)
    pinned ─┘

Rows stand in first-seen order (graph, vector, lexical, pinned); scoring sorts them later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prme_ray.model.enums import Path
from prme_ray.model.errors import InvalidRequest
from prme_ray.model.tables import (
    CANDIDATE,
    NODE,
    SIGNALS,
    built,
    column,
    field_of,
    floats,
    ints,
    joined_references,
    parts,
    refer,
    same_target,
    target_of,
)
from stages.columns import Rows, first_seen, places

__all__ = ["append_lexical", "append_new", "merge", "merge_max_signals", "merge_term_sets", "normalise_bm25"]

_CHANNELS = (
    (Path.GRAPH, Path.GRAPH.bit, 2),
    (Path.VECTOR, Path.VECTOR.bit, 0),
    (Path.LEXICAL, Path.LEXICAL.bit, 1),
    (Path.PINNED, Path.PINNED.bit, -1),
)
"""Path, its bit and the row of its signal (none: -1), in first-seen order."""

Floats = npt.NDArray[np.float64]


def normalise_bm25(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``(s - min) / (max - min)`` over one result set of shape (n,).

    A single hit, or equal scores, give 1.0. The weakest hit of a set gets 0.0 and is still on the
    channel. Raw BM25 has no upper bound and depends on the corpus, so it never reaches scoring.
    """
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if low == high:
        return np.ones(len(scores))
    normalised: npt.NDArray[np.float64] = (scores - low) / (high - low)
    return normalised


def merge(graph: pa.Table, vector: pa.Table, lexical: pa.Table, pinned: pa.Table, *, nodes: pa.Table) -> pa.Table:
    """Join the four channels by node id.

    Args:
        graph: CHANNEL, proximities 1.0, 0.7 or 0.4.
        vector: CHANNEL, cosines. Maxima start from 0, so a negative cosine becomes 0.
        lexical: CHANNEL, raw BM25, normalised here over all hits, resolvable or not.
        pinned: CHANNEL; only the ids count.
        nodes: NODE, or references to it: at least every resolvable memory, one row an id. Other ids are
            dropped: the index was ahead of, or behind, the snapshot.

    Returns:
        CANDIDATE in first-seen order.
    """
    tables = (graph, vector, lexical, pinned)
    memories = target_of(nodes)
    slots, where = first_seen([column(table, "node_id") for table in tables], field_of(memories, "node_id"))
    signals = np.zeros((3, len(where)))
    paths = np.zeros(len(where), dtype=np.int16)
    start = 0
    for table, (path, bit, row) in zip(tables, _CHANNELS, strict=True):
        here = slots[start : start + table.num_rows]
        start += table.num_rows
        paths[here] |= bit
        if row >= 0:
            values = floats(table, "signal")
            np.maximum.at(signals[row], here, normalise_bm25(values) if path is Path.LEXICAL else values)
    seen = np.flatnonzero(where >= 0)
    return _candidates(refer(memories, where[seen]), paths[seen], signals[:, seen])


def merge_term_sets(term_sets: Sequence[pa.Table], *, node_ids: pa.Array) -> tuple[Rows, Rows, Floats]:
    """Join the hit lists of separate keyword searches (digest a section 3.7).

    Each set is normalised on its own, since BM25 of different searches cannot be compared. A node
    keeps its largest normalised value; of equal values the first set's.

    Args:
        term_sets: One CHANNEL table of raw BM25 a search.
        node_ids: Ids of at least every resolvable hit.

    Returns:
        For each node, first seen first: its row in ``node_ids`` (-1 where it is not there), the hit that
        it keeps (hits counted through the sets), and that hit's normalised score.
    """
    slots, where = first_seen([column(table, "node_id") for table in term_sets], node_ids)
    if not len(slots):
        return where, where, np.empty(0)
    values = np.concatenate([normalise_bm25(floats(table, "signal")) for table in term_sets])
    best = np.full(len(where), -np.inf)
    np.maximum.at(best, slots, values)
    winners = np.flatnonzero(values == best[slots])[::-1]
    kept = np.empty(len(best), dtype=np.int64)
    # Written back to front, so the first winner of a node is the one that stays.
    kept[slots[winners]] = winners
    return where, kept, best


def append_lexical(candidates: pa.Table, term_sets: Sequence[pa.Table], *, nodes: pa.Table) -> tuple[pa.Table, int]:
    """Append the memories that only a keyword or entity scan found (digest a sections 3.7 and 4).

    Args:
        candidates: CANDIDATE; its rows stay unchanged, also where a scan found them again.
        term_sets: One CHANNEL table of raw BM25 a search.
        nodes: NODE, or references to it: at least every resolvable hit.

    Returns:
        The longer table and how many rows were added.
    """
    if _all_held(term_sets, candidates):
        return candidates, 0
    memories = target_of(nodes)
    where, _, values = merge_term_sets(term_sets, node_ids=field_of(memories, "node_id"))
    known = where >= 0
    found = refer(memories, where[known])
    new = places(found, column(candidates, "node")) < 0
    if not new.any():
        return candidates, 0
    signals = np.zeros((3, int(new.sum())))
    signals[1] = values[known][new]
    paths = np.full(signals.shape[1], Path.LEXICAL.bit, dtype=np.int16)
    rows = _candidates(found.filter(pa.array(new)), paths, signals)
    return _stacked(candidates, rows), rows.num_rows


def _all_held(hits: Sequence[pa.Table], candidates: pa.Table) -> bool:
    """Return whether every hit is a candidate, as far as row numbers tell: what a scan finds mostly is."""
    rows, memories = parts(column(candidates, "node"))
    ids = field_of(memories, "node_id")
    found = [parts(column(table, "node_id")) for table in hits if table.num_rows]
    if not all(same_target(target, ids) for _, target in found):
        return False
    held = np.zeros(len(ids), np.bool_)
    held[rows] = True
    return all(bool(held[hit].all()) for hit, _ in found)


def append_new(first: pa.Table, alternates: Sequence[pa.Table]) -> pa.Table:
    """Append what alternate queries found and ``first`` lacks, in the order of the passes (§7.6 new_only)."""
    joined = _stacked(first, *alternates)
    firsts = _first_rows(_encode(joined))
    return first if len(firsts) == first.num_rows else joined.take(pa.array(firsts))


def merge_max_signals(first: pa.Table, alternates: Sequence[pa.Table]) -> pa.Table:
    """Join query passes: paths united, each signal's maximum (digest a section 7.6 max_signals).

    Args:
        first: CANDIDATE of the question itself.
        alternates: CANDIDATE of each alternate query; all read at the same snapshot.

    Returns:
        CANDIDATE in first-seen order; ``path_count`` is the number of different paths.

    Raises:
        InvalidRequest: a signal is not finite, or one id has two different node records.
    """
    if not alternates:
        return first
    joined = _stacked(first, *alternates)
    encoded = _encode(joined)
    slots = encoded.indices.to_numpy().astype(np.int64)
    firsts = _first_rows(encoded)
    _same_records(joined, np.flatnonzero(firsts[slots] != np.arange(len(slots))), firsts[slots])
    signals = np.full((3, len(firsts)), -np.inf)
    for row, name in enumerate(SIGNALS):
        values = floats(joined, name)
        if not np.isfinite(values).all():
            raise InvalidRequest(argument=name, given=float(values[~np.isfinite(values)][0]), allowed="a finite number")
        np.maximum.at(signals[row], slots, values)
    paths = np.zeros(len(firsts), dtype=np.int16)
    np.bitwise_or.at(paths, slots, ints(joined, "paths").astype(np.int16))
    return _candidates(column(joined, "node").take(pa.array(firsts)), paths, signals)


def _encode(table: pa.Table) -> Any:
    return column(table, "node_id").dictionary_encode()


def _first_rows(encoded: Any) -> Rows:
    """Return the first row of every dictionary entry; ascending, as the dictionary is in that order."""
    slots = encoded.indices.to_numpy().astype(np.int64)
    firsts = np.empty(len(encoded.dictionary), dtype=np.int64)
    firsts[slots[::-1]] = np.arange(len(slots) - 1, -1, -1)
    return firsts


def _stacked(*tables: pa.Table) -> pa.Table:
    """Return CANDIDATE tables one below the other."""
    arrays = [
        reduce(joined_references, [column(table, field.name) for table in tables])
        if field.name == "node"
        else pa.concat_arrays([column(table, field.name) for table in tables])
        for field in CANDIDATE
    ]
    return pa.Table.from_arrays(arrays, schema=CANDIDATE)


def _same_records(joined: pa.Table, repeats: Rows, originals: Rows) -> None:
    for field in NODE:
        values = column(joined, field.name)
        again, before = values.take(pa.array(repeats)), values.take(pa.array(originals[repeats]))
        if again.equals(before):
            continue
        differ = next(row for row in range(len(repeats)) if again[row] != before[row])
        raise InvalidRequest(
            argument="alternates",
            given=f"two different records of memory {column(joined, 'node_id')[int(repeats[differ])].as_py()}",
            allowed="query passes that all read the same snapshot",
        )


def _candidates(nodes: pa.DictionaryArray, paths: npt.NDArray[np.int16], signals: npt.NDArray[np.float64]) -> pa.Table:
    """Return CANDIDATE rows of n references to memories and signals of shape (3, n)."""
    counts = np.bitwise_count(paths).astype(np.int16)
    columns = {"node": nodes, "paths": paths, "path_count": counts, **dict(zip(SIGNALS, signals, strict=True))}
    return built(CANDIDATE, columns)
