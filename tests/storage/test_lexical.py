import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from storage.analyzer import build_analyzer, query_terms
from storage.lexical import Lexical, LexicalIndex

NASTY = ["C++ AND (", '"unclosed', "title:", "-foo", "*", "", " ", "😀", "a" * 5000, "\\", "text:bike^2 [a TO b]"]


def documents(texts, start=0):
    return [(start + place, f"id{start + place:04d}", text) for place, text in enumerate(texts)]


def index_of(texts, folder=None, step=None) -> LexicalIndex:
    index = LexicalIndex(folder)
    step = step or max(len(texts), 1)
    for start in range(0, len(texts), step):
        index.extend(documents(texts[start : start + step], start))
    return index


def search(lexical: Lexical, query: str, k: int = 100, allowed=None) -> dict[int, float]:
    label = [f"id{row:04d}" for row in range(lexical.documents)]
    mask = None if allowed is None else np.asarray(allowed, bool)
    rows, scores = lexical.search(query, k=k, allowed=mask, ids=label)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def bm25(texts, query) -> dict[int, float]:
    bags = [Counter(build_analyzer().analyze(text)) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags)
    scores: dict[int, float] = {}
    for term in query_terms(query):
        df = sum(term in bag for bag in bags)
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        for row, bag in enumerate(bags):
            if term in bag:
                tf = bag[term] * 2.2 / (bag[term] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
                scores[row] = scores.get(row, 0.0) + idf * tf
    return scores


def some_texts(count: int, seed: int = 3) -> list[str]:
    chance = random.Random(seed)
    words = [f"word{number}" for number in range(60)]
    return [" ".join(chance.choices(words, k=chance.randint(1, 20))) for _ in range(count)]


def test_scores_are_bm25_by_hand():
    texts = ["the blue bike", "the red car and the blue bike shed", "a garden"]
    assert search(index_of(texts).freeze(), "blue bikes in the garden") == pytest.approx(
        bm25(texts, "blue bikes in the garden"), rel=1e-6
    )


def test_equal_scores_are_cut_by_id_wherever_they_lie():
    texts = ["same text"] * 9 + ["same text and more words here"] * 3
    for step in (1, 4, 12):
        assert list(search(index_of(texts, step=step).freeze(), "same", k=5)) == [0, 1, 2, 3, 4]


def test_filtered_hits_make_room_for_the_next_ones_and_keep_their_scores():
    texts = some_texts(200)
    lexical = index_of(texts).freeze()
    everything = search(lexical, "word1 word2 word3", k=200)
    allowed = np.arange(200) % 17 == 0
    wanted = [row for row in everything if allowed[row]]
    assert search(lexical, "word1 word2 word3", k=3, allowed=allowed) == {row: everything[row] for row in wanted[:3]}
    assert list(search(lexical, "word1 word2 word3", k=200, allowed=allowed)) == wanted
    assert search(lexical, "word1", allowed=np.zeros(200)) == {}


@hypothesis_settings(max_examples=8)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 7, 20]))
def test_scores_do_not_depend_on_how_writes_were_batched(seed, step):
    texts = some_texts(40, seed)
    query = " ".join(some_texts(1, seed + 1)) + " word5 word6 word7 word8 word9"
    assert search(index_of(texts, step=step).freeze(), query) == search(index_of(texts).freeze(), query)


def test_every_text_is_plain_text():
    lexical = index_of(["C++ and foo title", "bike", "text"]).freeze()
    for query in NASTY:
        search(lexical, query)
    assert list(search(lexical, "-foo")) == [0]
    assert list(search(lexical, "bike AND foo")) == list(search(lexical, "and bike foo"))
    assert list(search(lexical, "title:")) == [0]
    assert len(search(lexical, " ".join(f"w{number}" for number in range(10_000)) + " bike")) == 0  # past the cap


def test_nothing_is_found_in_nothing():
    assert search(index_of([]).freeze(), "bike") == {}
    assert search(index_of(["bike"]).freeze(), "bike", k=0) == {}
    assert search(index_of(["bike"]).freeze(), "bike", k=-1) == {}


def test_a_frozen_index_does_not_see_later_texts():
    index = index_of(["bike"])
    before = index.freeze()
    index.extend(documents(["bike bike"], start=1))
    assert (before.documents, list(search(before, "bike"))) == (1, [0])
    index.release()
    index.extend(documents(["bike shed"], start=2))
    assert sorted(search(index.freeze(), "bike")) == [0, 1, 2]


def test_a_word_inside_a_sentence_without_spaces_is_found():
    assert list(search(index_of(["我昨天在北京吃了烤鸭", "上海"]).freeze(), "烤鸭")) == [0]


class TestFolder:
    texts = some_texts(30)

    def reopened(self, folder, documents_now):
        index = LexicalIndex(folder)
        index.extend(documents_now)
        found = search(index.freeze(), "word1 word2 word3 word4")
        count = index.freeze().documents
        index.release()
        return found, count

    def in_memory(self, texts):
        return search(index_of(texts).freeze(), "word1 word2 word3 word4"), len(texts)

    @pytest.fixture
    def folder(self, tmp_path):
        index_of(self.texts[:20], tmp_path / "owner").release()
        return tmp_path / "owner"

    def test_what_is_missing_is_added(self, folder):
        assert self.reopened(folder, documents(self.texts)) == self.in_memory(self.texts)

    def test_what_fits_is_kept(self, folder):
        assert self.reopened(folder, documents(self.texts[:20])) == self.in_memory(self.texts[:20])

    @pytest.mark.parametrize("change", ["fewer", "other text"])
    def test_what_does_not_fit_is_built_anew(self, folder, change):
        now = self.texts[:10] if change == "fewer" else ["changed", *self.texts[1:25]]
        assert self.reopened(folder, documents(now)) == self.in_memory(now)

    @pytest.mark.parametrize("damage", ["meta", "analyzer"])
    def test_a_damaged_or_older_index_is_built_anew(self, folder, damage):
        current = next(folder.iterdir())
        if damage == "meta":
            (current / "meta.json").write_text("{broken")
        else:
            current.rename(folder / "older")
        assert self.reopened(folder, documents(self.texts)) == self.in_memory(self.texts)
        assert [path.name for path in folder.iterdir()] == [current.name]
