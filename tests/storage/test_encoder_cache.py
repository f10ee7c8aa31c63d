"""The vector cache: keys, order, bounds, immutability, and one call a text across threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from prme_ray.model.errors import EncoderRejected
from storage.encoder.cache import CachedEncoder


class Counter:
    """Vector of a text: its length and its number of vowels. Notes every list it was sent."""

    model_name = "counter"
    dimension = 2

    def __init__(self):
        self.model_version = "1"
        self.sent = []

    def embed(self, texts):
        self.sent.append(list(texts))
        return [[len(text), sum(text.count(vowel) for vowel in "aeiou")] for text in texts]


class Gate(Counter):
    """A :class:`Counter` whose calls wait for a signal; the first one then fails with ``error``, if any."""

    def __init__(self, error=None):
        super().__init__()
        self.started, self.open, self.error = threading.Event(), threading.Event(), error

    def embed(self, texts):
        answer = super().embed(texts)
        self.started.set()
        assert self.open.wait(10)
        if self.error is not None and len(self.sent) == 1:
            raise self.error
        return answer


class Asker(Counter):
    def embed_query(self, text):
        self.sent.append(text)
        return [-1.0, -1.0]


def values(vectors):
    return [vector.tolist() for vector in vectors]


def test_only_unknown_texts_are_sent_once_each_in_order():
    provider = Counter()
    cache = CachedEncoder(provider, entries=8)
    assert values(cache.embed_documents(["no", "yes", "no", "ja"])) == [[2, 1], [3, 1], [2, 1], [2, 1]]
    assert values(cache.embed_documents(["ja", "oui", "no", "été"])) == [[2, 1], [3, 3], [2, 1], [3, 0]]
    assert cache.embed_documents([]) == []
    assert provider.sent == [["no", "yes", "ja"], ["oui", "été"]]
    assert (cache.hits, cache.misses) == (3, 5)


def test_the_least_recently_used_entry_goes_first():
    provider = Counter()
    cache = CachedEncoder(provider, entries=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        cache.embed_documents([text])
    assert provider.sent == [["a"], ["b"], ["c"], ["b"]]


def test_a_batch_larger_than_the_cache_is_answered_whole():
    cache = CachedEncoder(Counter(), entries=1)
    assert values(cache.embed_documents(["a", "bb", "ccc"])) == [[1, 1], [2, 0], [3, 0]]


def test_no_entries_keep_nothing():
    provider = Counter()
    cache = CachedEncoder(provider, entries=0)
    cache.embed_documents(["a", "a"])
    cache.embed_documents(["a"])
    assert provider.sent == [["a"], ["a"]]


def test_questions_share_the_documents_keys_unless_encoded_differently():
    provider = Counter()
    cache = CachedEncoder(provider, entries=8)
    cache.embed_documents(["a"])
    assert cache.embed_query("a").tolist() == [1, 1]
    assert provider.sent == [["a"]]

    provider = Asker()
    cache = CachedEncoder(provider, entries=8)
    cache.embed_documents(["a"])
    assert values([cache.embed_query("a"), cache.embed_query("a")]) == [[-1, -1], [-1, -1]]
    assert values(cache.embed_documents(["a"])) == [[1, 1]]
    assert provider.sent == [["a"], "a"]


def test_a_new_identity_finds_nothing_of_the_old_one():
    provider = Counter()
    cache = CachedEncoder(provider, entries=8)
    before = cache.identity
    cache.embed_query("a")
    provider.model_version = "2"
    cache.embed_query("a")
    assert cache.identity != before
    assert provider.sent == [["a"], ["a"]]


def test_no_caller_can_change_a_kept_vector():
    cache = CachedEncoder(Counter(), entries=8)
    vector = cache.embed_query("a")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9
    with pytest.raises(ValueError, match="WRITEABLE"):
        vector.flags.writeable = True
    vector.shape = (1, 2)
    assert cache.embed_query("a").tolist() == [1, 1]


def test_threads_asking_for_one_text_share_one_call():
    provider = Gate()
    cache = CachedEncoder(provider, entries=0)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(cache.embed_documents, ["a", "b"])
        assert provider.started.wait(10)
        others = [threads.submit(cache.embed_documents, ["b", "a"]) for _ in range(3)]
        wait_until(lambda: cache.hits == 6)
        provider.open.set()
        assert values(first.result(10)) == [[1, 1], [1, 0]]
        assert [values(other.result(10)) for other in others] == [[[1, 0], [1, 1]]] * 3
    assert provider.sent == [["a", "b"]]


def test_a_failure_reaches_every_waiter_and_is_not_kept():
    provider = Gate(RuntimeError("out of order"))
    cache = CachedEncoder(provider, entries=8)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.embed_query, "a")
        assert provider.started.wait(10)
        second = threads.submit(cache.embed_query, "a")
        wait_until(lambda: cache.hits == 1)
        provider.open.set()
        for waiter in (first, second):
            with pytest.raises(RuntimeError, match="out of order"):
                waiter.result(10)
    assert cache.embed_query("a").tolist() == [1, 1]


def test_a_stopped_thread_does_not_stop_the_others():
    provider = Gate(KeyboardInterrupt())
    cache = CachedEncoder(provider, entries=8)
    stopped = []

    def lead():
        try:
            cache.embed_query("a")
        except KeyboardInterrupt:
            stopped.append(True)

    leader = threading.Thread(target=lead)
    leader.start()
    assert provider.started.wait(10)
    with ThreadPoolExecutor(1) as threads:
        waiter = threads.submit(cache.embed_query, "a")
        wait_until(lambda: cache.hits == 1)
        provider.open.set()
        assert waiter.result(10).tolist() == [1, 1]
    leader.join(10)
    assert stopped == [True]
    assert provider.sent == [["a"], ["a"]]


def test_a_refused_batch_leaves_nothing_behind():
    class Broken(Counter):
        def embed(self, texts):
            return [*super().embed(texts)[:-1], [float("nan"), 0]]

    provider = Broken()
    cache = CachedEncoder(provider, entries=8)
    for _ in range(2):
        with pytest.raises(EncoderRejected):
            cache.embed_documents(["a", "b"])
    assert provider.sent == [["a", "b"], ["a", "b"]]


def test_crossing_batches_of_many_threads_finish_with_one_call_a_text():
    provider = Counter()
    cache = CachedEncoder(provider, entries=100)
    texts = [f"text {number}" for number in range(40)]
    lists = [texts, texts[::-1], texts[::2] + texts[1::2], texts[10:] + texts[:10]]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(cache.embed_documents, lists))
    for given, answer in zip(lists, answers, strict=True):
        assert [vector[0] for vector in answer] == [len(text) for text in given]
    assert sorted(text for batch in provider.sent for text in batch) == sorted(texts)


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the expected state was not reached in 10 s"
        time.sleep(0.001)
