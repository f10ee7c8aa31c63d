"""Every setting is in the fingerprint or left out on purpose, refuses what it cannot be, and is read."""

import ast
import math
from operator import attrgetter

import pytest

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import Settings
from prme_ray.model.settings.walk import knobs
from tests.architecture import sources

# They say where and how fast an answer is made, never which: see docs/settings.md.
NOT_IN_FINGERPRINT = {
    "log_retrievals",
    "strict_receipts",
    "encoder.model_path",
    "encoder.cache_entries",
    "encoder.workers",
    "storage.database_url",
    "storage.tables_uri",
    "storage.database_prefix",
    "storage.virtual_shards",
    "storage.resident_bytes",
    "storage.lexical_ram_documents",
    "storage.projection_batch_rows",
    "storage.projection_idle_s",
    "storage.compact_after_fragments",
    "storage.group_commit_rows",
    "storage.write_queue",
    *(knob.dotted for knob in knobs() if knob.dotted.startswith("cluster.")),
    "storage.write_timeout_s",
}
# Stated in receipts for readers of other versions; no formula has a term for them.
ONLY_RECORDED = {"w_epistemic", "w_paths"}

# What cannot be made up from the type alone.
CHANGED = {
    "scope_scoring": {"agent": {}},
    "temporal_languages": ["fr"],
    "epistemic_weights": {"observed": 0.5},
    "confidence_overrides": {"asserted:user_stated": 0.5},
    "disabled_channels": ["GRAPH"],
    "scope_disabled_channels": {"agent": ["GRAPH"]},
    "scoring.node_type_boost": {},
    "encoder.model_sha256": "0" * 64,
    "storage.database_url": "postgresql://user@host/database",
    "storage.tables_uri": "file:///tables",
    "cluster.group_resources": {"0": {"memory_node": 0.1}},
    "cluster.stages": {"packed": "task"},
}
# What has to stand beside a change for it to be allowed or to have an effect.
BESIDE = {
    "cluster.embedders_min": {"cluster": {"embedders_max": 4}},
    "scoring.recency_time": {"scoring": {"fusion": "weighted"}},
    **{f"scoring.w_{name}": {"scoring": {"w_confidence": 0.10}} for name in ("semantic", "lexical", "graph")},
    **{f"scoring.w_{name}": {"scoring": {"w_confidence": 0.10}} for name in ("recency", "salience")},
    "scoring.w_confidence": {"scoring": {"w_salience": 0.05}},
}
STEPS = {name: 0.05 for name in BESIDE if name.startswith("scoring.w_")}

every_setting = pytest.mark.parametrize("knob", knobs(), ids=lambda knob: knob.dotted)


def with_value(knob, value):
    """Return settings data with one value and what has to stand beside it."""
    data = {name: dict(group) for name, group in BESIDE.get(knob.dotted, {}).items()}
    group = data
    for name in knob.path[:-1]:
        group = group.setdefault(name, {})
    group[knob.path[-1]] = value
    return data


def options(schema):
    return [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]


def nullable(schema):
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


def another(knob):
    """Return an allowed value that is not the default."""
    if knob.dotted in CHANGED:
        return CHANGED[knob.dotted]
    (option,) = options(knob.schema)
    choices = option.get("enum", [option["const"]] if "const" in option else [])
    if choices:
        return next(choice for choice in [*choices, None] if choice != knob.default)
    if option["type"] == "boolean":
        return not knob.default
    if option["type"] == "string":
        return "another"
    raised = knob.default + STEPS.get(knob.dotted, 1)
    highest = option.get("maximum", math.inf)
    if knob.default == highest:
        return highest - 1 if option["type"] == "integer" else highest / 2
    return min(raised, highest)


def wrong(knob):
    """Return values that the setting cannot have."""
    (option,) = options(knob.schema)
    if "enum" in option or "const" in option:
        found = ["nonsense", "", 5]
    else:
        found = {
            "boolean": ["yes", "true", 1, 0.0],
            "integer": ["5", True, 1.5, math.inf],
            "number": ["5", True, math.nan, -math.inf],
            "string": [5, b"text", "" if "minLength" in option or "pattern" in option else 5.0],
            "array": ["text", 5, ["no such item"], [5]],
            "object": [5, ["text"], {"nonsense": 0.5}],
        }[option["type"]]
    found += [option["minimum"] - 1] if "minimum" in option else []
    found += [option["exclusiveMinimum"]] if "exclusiveMinimum" in option else []
    found += [option["maximum"] + 1] if "maximum" in option else []
    return found if nullable(knob.schema) else [*found, None]


def alone(settings, path, value):
    """Return a copy with one value replaced and nothing validated, so that nothing else changes with it."""
    name, *rest = path
    return settings.model_copy(update={name: alone(getattr(settings, name), rest, value) if rest else value})


@every_setting
def test_a_change_shows_in_the_fingerprint_or_is_left_out_on_purpose(knob):
    value = attrgetter(knob.dotted)(Settings.parse(with_value(knob, another(knob))))
    assert value != knob.default
    changed = alone(Settings(), knob.path, value)
    assert (changed.fingerprint() == Settings().fingerprint()) is (knob.dotted in NOT_IN_FINGERPRINT)


def test_only_settings_that_exist_are_left_out():
    assert {knob.dotted for knob in knobs()} >= NOT_IN_FINGERPRINT


@every_setting
def test_a_wrong_value_is_refused_with_the_whole_path(knob):
    assert wrong(knob) != []
    for value in wrong(knob):
        with pytest.raises(InvalidSettings) as caught:
            Settings.parse(with_value(knob, value))
        argument = caught.value.argument
        assert argument == knob.dotted or argument.startswith((f"{knob.dotted}.", f"{knob.dotted}["))


def names_read():
    """Attributes and strings of the product outside the settings models."""
    found = set()
    for layer in ("prme_ray", "prme_ray.model", "stages", "storage", "actors"):
        for path in sources(layer):
            if path.parent.name == "settings":
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return found


def test_every_setting_is_read_by_the_product():
    # scoring_for and closed_scopes are how requests read the two maps by scope.
    unread = {knob.path[-1] for knob in knobs()} - names_read() - {"scope_scoring", "scope_disabled_channels"}
    assert unread == ONLY_RECORDED
