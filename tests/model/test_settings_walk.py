"""The settings tree as a flat list, and nested mappings by path."""

import pytest

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings import EncoderSettings, PackingSettings, Settings
from prme_ray.model.settings.base import SettingsModel
from prme_ray.model.settings.walk import flatten, group_of, knobs


def test_every_leaf_of_the_tree_is_there_once_and_no_group():
    def leaves(settings):
        values = [getattr(settings, name) for name in type(settings).model_fields]
        return sum(leaves(value) if isinstance(value, SettingsModel) else 1 for value in values)

    assert len({knob.path for knob in knobs()}) == len(knobs()) == leaves(Settings())
    assert not any(isinstance(knob.default, SettingsModel) for knob in knobs())


def test_a_knob_holds_what_its_field_says():
    (hops,) = [knob for knob in knobs() if knob.dotted == "packing.graph_max_hops"]
    assert (hops.path, hops.default) == (("packing", "graph_max_hops"), 3)
    assert (hops.schema["type"], hops.schema["minimum"], hops.schema["maximum"]) == ("integer", 1, 3)
    assert hops.meaning.startswith("Traversal depth")
    (weights,) = [knob for knob in knobs() if knob.dotted == "epistemic_weights"]
    assert "observed" in weights.schema["propertyNames"]["enum"]  # a reference to the enum, resolved


def test_groups_are_told_from_single_settings():
    assert group_of(Settings, "packing") is PackingSettings
    assert group_of(Settings, "epistemic_weights") is None
    assert group_of(Settings, "nothing") is None


def test_a_mapping_is_flattened_at_groups_only():
    data = {"packing": {"vector_k": 1}, "epistemic_weights": {"observed": 1}, "unknown": {"a": 1}, "scoring": {}}
    assert flatten(data) == {
        ("packing", "vector_k"): 1,
        ("epistemic_weights",): {"observed": 1},
        ("unknown",): {"a": 1},
    }


def test_a_group_given_as_an_object_sets_every_field():
    found = flatten({"encoder": EncoderSettings(workers=3)})
    assert found[("encoder", "workers")] == 3
    assert {path[1] for path in found} == set(EncoderSettings.model_fields)


@pytest.mark.parametrize("value", [None, 5, "text", [1]])
def test_a_group_is_nothing_but_a_mapping(value):
    with pytest.raises(InvalidSettings, match=r"^packing=.* is not allowed: give a mapping"):
        flatten({"packing": value})
