"""Which files make a model's identity, with folders and a hub cache written out here. Needs no torch."""

import os
import shutil
import subprocess
import sys

import pytest

from prme_ray.model.errors import InvalidSettings
from storage.encoder.model_files import file_digests, file_states, model_folder

COUNTED = ["1_Pooling/config.json", "config.json", "model.safetensors", "modules.json", "tokenizer.json"]


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "model", COUNTED)


def write(folder, names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}", "utf-8")
    return folder


def test_digests_are_of_the_files_in_sorted_order(folder):
    import hashlib

    found = file_digests(folder)
    assert list(found) == COUNTED
    assert found["config.json"] == hashlib.sha256(b"content of config.json").hexdigest()


def test_files_that_no_load_reads_do_not_count(folder):
    before = file_digests(folder), file_states(folder)
    extra = ["README.md", ".gitattributes", ".cache/huggingface/x.json", "1_Pooling/.hidden", "train.py", "LICENSE"]
    write(folder, [*extra, "onnx/model.onnx", "openvino/model.xml", "tf_model.h5", "data_config.json"])
    assert (file_digests(folder), file_states(folder)) == before


def test_pickled_weights_count_only_where_nothing_safer_lies_beside_them(folder):
    before = file_digests(folder)
    write(folder, ["pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin"])
    assert file_digests(folder) == before
    write(folder, ["2_Dense/pytorch_model.bin"])
    assert set(file_digests(folder)) == {*COUNTED, "2_Dense/pytorch_model.bin"}
    (folder / "model.safetensors").unlink()
    assert "pytorch_model.bin" in file_digests(folder)


@pytest.mark.parametrize("name", COUNTED)
def test_every_other_file_counts(folder, name):
    before = file_digests(folder), file_states(folder)
    (folder / name).write_text("something else", "utf-8")
    assert file_digests(folder) != before[0]
    assert file_states(folder) != before[1]


def test_a_copy_elsewhere_has_the_same_digests(folder, tmp_path):
    assert file_digests(shutil.copytree(folder, tmp_path / "elsewhere")) == file_digests(folder)


def test_a_folder_is_taken_as_it_is(folder):
    assert model_folder(str(folder), None) == folder
    with pytest.raises(InvalidSettings, match="no hub name"):
        model_folder(str(folder), "main")


@pytest.mark.parametrize("given", ["./nowhere", "/no/where", "a/b/c", "C:\\models\\x"])
def test_a_folder_that_is_missing_is_not_looked_for_on_the_hub(given):
    with pytest.raises(InvalidSettings, match="no such folder"):
        model_folder(given, None)


def test_models_whose_files_do_not_decide_the_vectors_are_refused(folder):
    write(folder, ["adapter_config.json"])
    with pytest.raises(InvalidSettings, match="merge"):
        model_folder(str(folder), None)
    (folder / "modules.json").unlink()
    with pytest.raises(InvalidSettings, match="pooling"):
        model_folder(str(folder), None)


def hub_cache(home, organisation):
    """Write a hub cache as a download leaves it: one commit, which ``main`` points to."""
    root = home / "hub" / f"models--{organisation}--tiny"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("c0ffee", "utf-8")
    return write(root / "snapshots" / "c0ffee", COUNTED)


def resolve(home, *arguments):
    # The hub library reads its environment when it is imported, so each case is a process of its own.
    code = "import sys; from storage.encoder.model_files import model_folder; print(model_folder(*eval(sys.argv[1])))"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home)}
    environment.pop("HF_HUB_CACHE", None)
    return subprocess.run(
        [sys.executable, "-c", code, repr(arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_a_hub_name_is_its_cached_snapshot(tmp_path):
    named, short = hub_cache(tmp_path, "toys"), hub_cache(tmp_path, "sentence-transformers")
    assert resolve(tmp_path, "toys/tiny", None).stdout.strip() == str(named)
    assert resolve(tmp_path, "tiny", "main").stdout.strip() == str(short)


def test_a_hub_name_that_is_not_cached_is_named_in_the_error(tmp_path):
    done = resolve(tmp_path, "toys/absent", None)
    assert done.returncode == 1
    assert "InvalidSettings: model='toys/absent' is not allowed" in done.stderr
    assert "LocalEntryNotFoundError" in done.stderr
