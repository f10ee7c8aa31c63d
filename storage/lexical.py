"""BM25 over one owner's memories, on Tantivy (RFC-0005 §4.3, digest a §3.4, decisions 4 and 6).

The index belongs to one owner, so no other owner's text can move a score, and filters choose among
hits without ever being a term. The score is Okapi BM25 with k1 = 1.2 and b = 0.75; lengths are
rounded to Tantivy's 256 steps.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tantivy

from storage.analyzer import ANALYZER_ID, build_analyzer, index_text, query_terms
from storage.ordering import ordered

__all__ = ["Lexical", "LexicalIndex", "TextRow"]

TextRow = tuple[int, str, str]
"""Row of the memory, its id, its text."""

_ANALYZER = "owner"
_WRITER_BYTES = 15_000_000  # the least Tantivy takes for one thread; reserved only as it is used


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name=_ANALYZER, index_option="freq")
    # Signed on purpose: an unsigned field given a Python int ends Tantivy's writer thread.
    builder.add_integer_field("ordinal", fast=True)
    builder.add_integer_field("check", fast=True)
    return builder.build()


_SCHEMA = _schema()
_FETCH_ALL = 0.5
_SPARE = 64
"""Hits fetched beyond those wanted: short texts often tie at the cut, and a second search costs more."""


@dataclass(frozen=True, slots=True)
class Lexical:
    """The index at one commit; later writes and merges do not show in it.

    Attributes:
        searcher: Tantivy searcher.
        documents: Number of indexed memories.
    """

    searcher: Any
    documents: int

    def search(
        self, query: str, *, k: int, allowed: npt.NDArray[np.bool_] | None, ids: Sequence[str] | npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the ``k`` best allowed rows and their BM25 scores, ordered by (-score, id).

        The question is a bag of terms, any of which may match. Hits are fetched until the score falls
        below that of the k-th allowed one, so ties at the cut are decided by id and not by where in
        the index a memory lies.

        Args:
            query: The question, as plain text.
            k: Most rows to return; 0 or less returns none.
            allowed: Rows that may be returned; ``None``: all.
            ids: Id of every row, or the place of each id among them.
        """
        terms = query_terms(query) if k > 0 and self.documents else []
        if not terms:
            return np.empty(0, np.int64), np.empty(0, np.float64)
        wanted = _any_of(terms)
        # A cut near the end of the index costs more than fetching the rest too.
        limit = k + min(k, _SPARE) if k < _FETCH_ALL * self.documents else self.documents
        while True:
            limit = min(limit, self.documents)
            rows, scores, lowest = self._fetch(wanted, limit)
            exhausted = limit == self.documents or lowest is None
            if allowed is not None:
                kept = allowed[rows]
                rows, scores = rows[kept], scores[kept]
            if exhausted or (len(rows) >= k and lowest is not None and lowest < scores[k - 1]):
                break
            limit *= 2
        order = ordered(rows, [-scores], ids=ids, limit=k)
        return rows[order], scores[order]

    def _fetch(self, query: Any, limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float | None]:
        """Return rows and scores, best first, and the last score (``None`` when nothing is left)."""
        hits = self.searcher.search(query, limit, False).hits
        if not hits:
            return np.empty(0, np.int64), np.empty(0, np.float64), None
        values, addresses = zip(*hits, strict=True)
        scores = np.array(values, np.float64)
        rows = np.array(self.searcher.fast_field_values("ordinal", list(addresses)), np.int64)
        return rows, scores, float(scores[-1]) if len(hits) == limit else None


class LexicalIndex:
    """Writer's side of an owner's index.

    In memory, or in a folder for owners too large to rebuild at every start. The folder holds a
    projection: it is compared with the log's memories when first written, completed when it lacks
    some, and rebuilt when it holds anything else.

    Args:
        folder: Folder of this index alone; ``None`` keeps it in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._index = _open(folder)
        self._index.register_tokenizer(_ANALYZER, build_analyzer())
        # The default policy watches the folder and answers 100 ms late; we reload after each commit.
        self._index.config_reader("manual")
        self._index.reload()
        self._writer: Any = None
        self._compared = False

    def extend(self, documents: Sequence[TextRow]) -> None:
        """Add memories in admission order; durable and readable on return.

        The first call must bring all memories from the first one on: it settles what a folder held.
        """
        missing = documents
        if not self._compared:
            missing = self._settle(documents)
        if not missing:
            return
        try:
            writer = self._writing()
            for ordinal, node_id, text in missing:
                document = tantivy.Document()
                document.add_text("text", index_text(text))
                document.add_integer("ordinal", ordinal)
                document.add_integer("check", _check(node_id, text))
                writer.add_document(document)
            writer.commit()
        except BaseException:
            # Nothing uncommitted may slip into a later commit.
            self._writer = None
            raise
        self._index.reload()

    def freeze(self) -> Lexical:
        """Return the index as of the last commit; empty until what a folder held is settled."""
        searcher = self._index.searcher()
        return Lexical(searcher, searcher.num_docs if self._compared else 0)

    def release(self) -> None:
        """End the writer's threads and free its folder; the next write starts them again."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()

    def _writing(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(_WRITER_BYTES, 1)
        return self._writer

    def _settle(self, documents: Sequence[TextRow]) -> Sequence[TextRow]:
        self._compared = True
        searcher = self._index.searcher()
        held: int = searcher.num_docs
        if not held:
            return documents
        addresses = [address for _, address in searcher.search(tantivy.Query.all_query(), held, False).hits]
        ordinals = searcher.fast_field_values("ordinal", addresses)
        found = dict(zip(ordinals, searcher.fast_field_values("check", addresses), strict=True))
        if found == {ordinal: _check(node_id, text) for ordinal, node_id, text in documents[:held]}:
            return documents[held:]
        writer = self._writing()
        writer.delete_all_documents()
        writer.commit()
        self._index.reload()
        return documents


def _check(node_id: str, text: str) -> int:
    """Return 63 bits that tell whether a document on disk is still this memory."""
    digest = blake2b(f"{node_id}\x00{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def _open(folder: Path | None) -> Any:
    if folder is None:
        return tantivy.Index(_SCHEMA)
    current = folder / blake2b(ANALYZER_ID.encode(), digest_size=6).hexdigest()
    current.mkdir(parents=True, exist_ok=True)
    for other in folder.iterdir():
        if other != current:  # terms of an older analyzer
            shutil.rmtree(other)
    try:
        return tantivy.Index(_SCHEMA, path=str(current))
    except (ValueError, OSError):
        # Unreadable or of another Tantivy: the log still has every text.
        shutil.rmtree(current)
        current.mkdir()
        return tantivy.Index(_SCHEMA, path=str(current))


def _any_of(terms: Sequence[str]) -> Any:
    """Return the OR of ``terms`` as a balanced tree of pairs.

    Adding floats is commutative but not associative, and a flat OR adds in an order that follows the
    segments. A tree fixes which two sums meet, so scores do not depend on how writes were batched.
    """
    level = [tantivy.Query.term_query(_SCHEMA, "text", term, "freq") for term in terms]
    should = tantivy.Occur.Should
    while len(level) > 1:
        pairs = [
            tantivy.Query.boolean_query([(should, left), (should, right)])
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = pairs + level[2 * len(pairs) :]
    return level[0]
