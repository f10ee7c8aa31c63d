"""The jobs take settings from a file and from the environment, and say plainly what is wrong with them."""

import pytest

from jobs.benchmark.__main__ import main as benchmark
from jobs.benchmark.relevance import ARMS, arm_settings
from jobs.demo import main as demo
from prme_ray.model.settings import Settings

CALLS = {
    "demo": lambda folder: demo(["--store", str(folder)]),
    "latency": lambda folder: benchmark(["latency", "--json", str(folder / "r.json")]),
}


@pytest.mark.parametrize("job", CALLS)
def test_a_wrong_variable_ends_a_job_before_it_makes_anything(job, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PRME_PACKING__VECTOR_K", "-1")
    with pytest.raises(SystemExit) as ended:
        CALLS[job](tmp_path / "out")
    assert ended.value.code == 2
    assert "PRME_PACKING__VECTOR_K=-1 is not allowed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_wrong_file_is_named(tmp_path, capsys):
    file = tmp_path / "settings.toml"
    file.write_text("[paking]\n")
    with pytest.raises(SystemExit):
        demo(["--store", str(tmp_path / "out"), "--settings", str(file)])
    assert f"{file}: paking={{}} is not allowed: give a known key, such as 'packing'" in capsys.readouterr().err


def test_baselines_share_encoder_files_and_lines_with_the_product_and_nothing_else():
    settings = Settings(
        scoring={"fusion": "weighted"},
        packing={"context_format": "compact", "evidence_projection_top_k": 3},
        encoder={"max_tokens": 64},
        storage={"virtual_shards": 2},
        epistemic_weights={"observed": 0.2},
        scope_scoring={"agent": {}},
    )
    assert arm_settings("full", settings) is settings
    for arm in set(ARMS) - {"full"}:
        baseline = arm_settings(arm, settings)
        assert (baseline.encoder, baseline.storage) == (settings.encoder, settings.storage)
        assert baseline.packing.context_format == "compact"
        assert baseline.packing.evidence_projection_top_k == 0
        assert baseline.scoring.fusion == "rrf"
        assert set(baseline.epistemic_weights.values()) == {1.0}
        assert baseline.scope_scoring == {}
