"""Settings from a file, the environment and code: who wins, what is refused, and under which name."""

import json
import subprocess
import sys

import pytest

import prme_ray
from prme_ray import load_settings
from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import PackingSettings, ScoringSettings, Settings
from prme_ray.model.settings.walk import knobs
from prme_ray.settings_io import ALIASES, variable_name


def refused(**sources):
    with pytest.raises(InvalidSettings) as caught:
        load_settings(**{"environ": {}} | sources)
    return caught.value


@pytest.fixture
def written(tmp_path):
    def write(text, name="settings.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_nothing_given_is_the_product_default():
    assert load_settings(environ={"HOME": "/", "prme_scoring__fusion": "weighted"}) == Settings()


def test_the_environment_is_that_of_the_process_unless_one_is_given(monkeypatch):
    monkeypatch.setenv("PRME_PACKING__VECTOR_K", "7")
    assert load_settings().packing.vector_k == 7
    assert load_settings(environ={}).packing.vector_k == 500


def test_code_wins_over_the_environment_and_that_over_the_file(written):
    file = written("link_entities = false\n[packing]\nvector_k = 1\nlexical_k = 1\ngraph_max_candidates = 1\n")
    environ = {"PRME_PACKING__LEXICAL_K": "2", "PRME_PACKING__GRAPH_MAX_CANDIDATES": "2"}
    settings = load_settings(file=file, environ=environ, overrides={"packing": {"graph_max_candidates": 3}})
    packing = settings.packing
    assert (packing.vector_k, packing.lexical_k, packing.graph_max_candidates) == (1, 2, 3)
    assert not settings.link_entities
    # What nobody names is the product default, also inside a group that somebody names.
    assert packing == PackingSettings(vector_k=1, lexical_k=2, graph_max_candidates=3)


def test_weights_may_come_from_several_sources_and_are_summed_together(written):
    file = written('{"scoring": {"w_semantic": 0.35}}', "settings.json")
    assert load_settings(file=file, environ={"PRME_SCORING__W_LEXICAL": "0.1"}).scoring.w_lexical == 0.1
    assert refused(file=file).argument == "scoring.w_*"


def test_a_group_given_as_an_object_is_whole(written):
    environ = {"PRME_SCORING__TEMPORAL_BOOST": "0.5"}
    scoring = ScoringSettings(fusion="weighted")
    assert load_settings(environ=environ, overrides={"scoring": scoring}).scoring == scoring


def test_switching_the_formula_in_the_environment_needs_one_variable():
    assert load_settings(environ={"PRME_SCORING__FUSION": "weighted"}).scoring == ScoringSettings(fusion="weighted")


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("PRME_QUERY_INTENT_ORDER", "temporal_first", {"query_intent_order": "temporal_first"}),
        ("PRME_PACKING__VECTOR_K", "12", {"packing": {"vector_k": 12}}),
        ("PRME_UNVERIFIED_CONFIDENCE_THRESHOLD", "1e-1", {"unverified_confidence_threshold": 0.1}),
        ("PRME_LINK_ENTITIES", "false", {"link_entities": False}),
        ("PRME_TEMPORAL_LANGUAGES", '["fr", "zh-Hant"]', {"temporal_languages": ("fr", "zh-Hant")}),
        ("PRME_TEMPORAL_LANGUAGES", "[]", {"temporal_languages": ()}),
        ("PRME_EPISTEMIC_WEIGHTS", '{"observed": 0.5}', {"epistemic_weights": {"observed": 0.5}}),
        ("PRME_SCOPE_SCORING", '{"agent": {"rrf_k": 9}}', {"scope_scoring": {"agent": ScoringSettings(rrf_k=9)}}),
        ("PRME_SCORING__RRF_RECENCY_BOOST", "null", {"scoring": {"rrf_recency_boost": None}}),
        ("PRME_SCORING__RRF_TIE_BREAK", "null", {"scoring": {"rrf_tie_break": None}}),
        ("PRME_ENCODER__MODEL_PATH", "modèles/a b.onnx", {"encoder": {"model_path": "modèles/a b.onnx"}}),
        ("PRME_PACKING__TOKENIZER", "null", {"packing": {"tokenizer": "null"}}),  # may not be left empty: text
    ],
)
def test_a_variable_is_text_or_json_as_its_setting_asks(name, text, same):
    assert load_settings(environ={name: text}) == Settings.parse(same) != Settings()


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("PRME_PACKING__VECTOR_K", "", "unset it"),
        ("PRME_PACKING__TOKENIZER", "", "unset it"),
        ("PRME_PACKING__VECTOR_K", "many", "JSON, such as 500"),
        ("PRME_PACKING__VECTOR_K", "true", "int"),
        ("PRME_PACKING__VECTOR_K", "-1", "0"),
        ("PRME_PACKING__VECTOR_K", "NaN", "finite"),
        ("PRME_PACKING__VECTOR_K", "[" * 100_000, "JSON"),
        ("PRME_LINK_ENTITIES", "yes", "JSON, such as true"),
        ("PRME_LINK_ENTITIES", "1", "bool"),
        ("PRME_SCORING__FUSION", "rff", "'rrf'"),
        ("PRME_TEMPORAL_LANGUAGES", "en", 'JSON, such as ["en"]'),
        ("PRME_CONFIDENCE_OVERRIDES", '{"a": 1, "a": 0}', "JSON"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_of_its_variable(name, text, hint):
    error = refused(environ={name: text})
    assert error.argument == name
    assert hint in error.allowed


def test_a_wrong_value_inside_a_map_is_located_there():
    error = refused(environ={"PRME_EPISTEMIC_WEIGHTS": '{"observed": 2}'})
    assert error.argument == "PRME_EPISTEMIC_WEIGHTS.observed"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("PRME_SCORRING__FUSION", "PRME_SCORING__FUSION"),
        ("PRME_SCORING_FUSION", "PRME_SCORING__FUSION"),  # one spelling only
        ("PRME_scoring__fusion", "PRME_"),
        ("PRME_SCORING", "PRME_SCORING__"),  # a group is set field by field
        ("PRME_EPISTEMIC_WEIGHTS__OBSERVED", "PRME_EPISTEMIC_WEIGHTS"),  # and a map as a whole
        ("PRME_QUERY_INTENT_ORDERS", "PRME_QUERY_INTENT_ORDER"),
        ("PRME_", "PRME_"),
    ],
)
def test_an_unknown_variable_is_refused_and_the_nearest_named_but_not_its_value(name, near):
    error = refused(environ={name: "hunter2"})
    assert error.argument == name
    assert near in error.allowed
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(("name", "path"), ALIASES.items())
def test_a_second_name_means_the_same_and_never_shows_its_value(name, path):
    url = "postgresql://u:hunter2@db/one"
    assert path in {knob.path for knob in knobs()}
    assert load_settings(environ={name: url}) == load_settings(environ={variable_name(path): url}) != Settings()
    assert load_settings(environ={name: url, variable_name(path): url}).storage.database_url == url
    for environ in ({name: url, variable_name(path): url + "2"}, {name: "mysql://u:hunter2@db/one"}):
        error = refused(environ=environ)
        assert error.argument == name
        assert "hunter2" not in str(error)


def test_every_setting_has_its_own_variable():
    # No name has two underscores in a row, so a variable can be read in one way only.
    assert not [knob.dotted for knob in knobs() if any("__" in name or name != name.lower() for name in knob.path)]
    assert len({variable_name(knob.path) for knob in knobs()}) == len(knobs())


@pytest.mark.parametrize(
    ("text", "name", "argument", "hint"),
    [
        ("[packing]\nvector_k = -1\n", "a.toml", "{file}: packing.vector_k", "0"),
        ("[packing]\nvector_kk = 1\n", "a.toml", "{file}: packing.vector_kk", "'vector_k'"),
        ("[paking]\nvector_k = 1\n", "a.toml", "{file}: paking", "'packing'"),
        ("packing = 3\n", "a.toml", "{file}: packing", "mapping"),
        ("[scope_scoring.agent]\nrrf_k = 0\n", "a.toml", "{file}: scope_scoring.agent.rrf_k", "1"),
        ("[packing]\nvector_k = nan\n", "a.toml", "{file}: packing.vector_k", "finite"),
        ("packing = {", "a.toml", "file", "valid TOML"),
        ("[packing]\n[packing]\n", "a.toml", "file", "valid TOML"),
        (b"tokenizer = '\xff'", "a.toml", "file", "UTF-8"),
        ('{"packing": {}, "packing": {}}', "a.json", "file", "twice"),
        ("[" * 100_000, "a.json", "file", "valid JSON"),
        ("[1]", "a.json", "file", "one JSON object"),
        ("packing: {}", "a.yaml", "file", "*.toml or *.json"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(written, text, name, argument, hint):
    file = written(text, name)
    error = refused(file=file)
    assert error.argument == argument.format(file=file)
    assert hint in error.allowed


def test_a_file_that_is_not_there_is_named(tmp_path):
    error = refused(file=tmp_path / "none.toml")
    assert (error.argument, error.given) == ("file", str(tmp_path / "none.toml"))
    assert "No such file" in error.allowed


def test_an_error_names_the_source_that_won(written):
    file = written("[packing]\nvector_k = -1\n")
    environ = {"PRME_PACKING__VECTOR_K": "-2"}
    assert refused(file=file, environ=environ).argument == "PRME_PACKING__VECTOR_K"
    overrides = {"packing": {"vector_k": -3}}
    assert refused(file=file, environ=environ, overrides=overrides).argument == "packing.vector_k"
    assert load_settings(file=file, environ={"PRME_PACKING__VECTOR_K": "2"}).packing.vector_k == 2


def test_overrides_are_a_mapping():
    assert refused(overrides=[("link_entities", False)]).argument == "overrides"
    assert refused(overrides={"link_entitys": False}).argument == "link_entitys"
    assert refused(overrides={"packing": None}).argument == "packing"


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_settings_written_out_are_read_back(written, suffix):
    settings = Settings(packing={"token_budget": 9}, scope_scoring={"agent": {"fusion": "weighted"}})
    if suffix == "json":
        file = written(settings.model_dump_json(), "all.json")
    else:  # TOML has no null: what is None in the defaults is left out
        file = written('packing.token_budget = 9\nscope_scoring.agent.fusion = "weighted"\n')
    assert load_settings(file=file, environ={}) == settings


def test_memory_does_not_read_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PRME_SCORRING", "wrong")
    monkeypatch.setenv("PRME_STORAGE__VIRTUAL_SHARDS", "3")
    with prme_ray.Memory.open(tmp_path / "store", settings={"storage": {"virtual_shards": 2}}) as memory:
        assert memory.health().virtual_shards == 2


def test_importing_reads_no_environment():
    code = "import prme_ray.settings_io, json; print(json.dumps('ok'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PRME_NONSENSE": "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == "ok"
