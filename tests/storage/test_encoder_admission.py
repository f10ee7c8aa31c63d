"""Admission checks with small providers that break one rule each."""

import numpy as np
import pytest

from prme_ray.model.errors import EncoderRejected
from storage.encoder.admission import admit, admit_query, identity

SECRET = "the-secret-text"
LARGEST = 3.4028234663852886e38


class Provider:
    """Answers with what it was told to; counts its calls."""

    def __init__(self, answer=None, *, name="toy", version="1", dimension=2):
        self.model_name, self.model_version, self.dimension = name, version, dimension
        self.answer = answer
        self.calls = 0

    def embed(self, texts):
        self.calls += 1
        return [[1.0, 0.5]] * len(texts) if self.answer is None else self.answer


class QueryProvider(Provider):
    def embed_query(self, text):
        if text == "fail":
            raise RuntimeError("no query encoder today")
        return [0.0, 2.0]


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 0.5]],
        [(np.float32(1), np.float64(0.5))],
        [np.array([1, 0.5])],
        [np.array([1, 0.5], np.float16)],
        np.array([[1, 0.5]], np.float32),
    ],
)
def test_real_numbers_of_any_kind_become_float32(answer):
    (vector,) = admit(Provider(answer), ["a"])
    assert vector.dtype == np.float32
    assert vector.tolist() == [1.0, 0.5]


def test_the_ends_of_float32_are_allowed():
    assert admit(Provider([[LARGEST, -LARGEST]]), ["a"])[0].tolist() == [LARGEST, -LARGEST]
    assert admit(Provider(np.array([[3, -3]])), ["a"])[0].tolist() == [3, -3]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], "0 vectors for 1 texts"),
        ([[1.0, 2.0], [1.0, 2.0]], "2 vectors for 1 texts"),
        ([[1.0]], "shape"),
        ([[1.0, 2.0, 3.0]], "shape"),
        (np.zeros((1, 2, 1)), "shape"),
        (np.array(1.0), "0 vectors"),
        ([[1.0, float("nan")]], "NaN"),
        ([[1.0, float("inf")]], "NaN, infinite"),
        ([np.array([1.0, np.nan])], "NaN"),
        ([[1.0, LARGEST * 1.0000001]], "beyond float32"),
        ([np.array([1.0, -1e39])], "beyond float32"),
        ([[1, 10**400]], "beyond float32"),
        ([[1.0, True]], "bool"),
        ([np.array([True, False])], "bool"),
        ([[1.0, np.bool_(True)]], "bool"),
        ([[1.0, None]], "NoneType"),
        ([[1.0, SECRET]], "str"),
        ([[1.0, 1j]], "complex"),
        ([np.array([1.0, None])], "object"),
        ([SECRET], "str"),
        ([b"ab"], "bytes"),
        (SECRET, "str"),
        (iter([[1.0, 2.0]]), "not a sequence"),
        (7, "int"),
    ],
)
def test_anything_else_is_refused_without_the_text(answer, why):
    with pytest.raises(EncoderRejected, match=why) as refused:
        admit(Provider(answer), [SECRET])
    assert SECRET not in str(refused.value)


def test_one_wrong_vector_refuses_the_batch():
    with pytest.raises(EncoderRejected, match="vector 1 "):
        admit(Provider([[1.0, 2.0], [1.0, float("nan")], [0.0, 0.0]]), ["a", "b", "c"])


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": " "},
        {"name": None},
        {"version": ""},
        {"version": 3},
        {"dimension": 0},
        {"dimension": True},
        {"dimension": 2.0},
    ],
)
def test_metadata_is_checked_before_the_call(metadata):
    provider = Provider(**metadata)
    with pytest.raises(EncoderRejected):
        admit(provider, ["a"])
    with pytest.raises(EncoderRejected):
        identity(provider)
    assert provider.calls == 0


def test_no_text_no_call():
    provider = Provider()
    assert admit(provider, []) == []
    assert provider.calls == 0


@pytest.mark.parametrize("field", ["model_name", "model_version", "dimension"])
def test_metadata_that_changes_during_the_call_is_refused(field):
    class Changing(Provider):
        def embed(self, texts):
            setattr(self, field, 3 if field == "dimension" else "2")
            return super().embed(texts)

    with pytest.raises(EncoderRejected, match="during the call"):
        admit(Changing(), ["a"])


def test_an_identity_other_than_the_expected_one_is_refused_before_the_call():
    provider = Provider()
    known = identity(provider)
    assert len(admit(provider, ["a"], expected=known)) == 1
    provider.model_version = "2"
    with pytest.raises(EncoderRejected, match="before the call"):
        admit(provider, ["a"], expected=known)
    assert provider.calls == 1


def test_the_provider_cannot_change_the_list_nor_the_vectors_afterwards():
    class Greedy(Provider):
        matrix = np.array([[1.0, 0.5], [0.5, 1.0]], np.float32)

        def embed(self, texts):
            texts.clear()
            return self.matrix

    provider, texts = Greedy(), ["a", "b"]
    vectors = admit(provider, texts)
    provider.matrix[:] = 9
    assert texts == ["a", "b"]
    assert [vector.tolist() for vector in vectors] == [[1.0, 0.5], [0.5, 1.0]]


def test_questions_use_the_query_encoder_and_its_errors():
    assert admit_query(Provider(), "q").tolist() == [1.0, 0.5]
    provider = QueryProvider()
    assert admit_query(provider, "q").tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="today"):
        admit_query(provider, "fail")
    assert provider.calls == 0


def test_identity_tells_every_part_apart():
    given = [Provider(), Provider(name="toy1"), Provider(version="2"), Provider(dimension=3)]
    assert len({identity(provider) for provider in given}) == 4
    assert identity(Provider(name="a", version="bc")) != identity(Provider(name="ab", version="c"))
    assert identity(Provider()) == identity(Provider(answer=[]))
