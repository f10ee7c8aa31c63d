"""The dashboard shows every metric there is, and none that is not."""

import json
import re

import pytest

from prme_ray.observe.metrics import METERS
from prme_ray.observe.registry import Kind
from tests.architecture import ROOT

OPS = ROOT / "docs" / "ops"
METRICS = {metric.name: metric for metric in METERS.registry.metrics}
DASHBOARD = json.loads((OPS / "grafana-dashboard.json").read_text("utf-8"))
QUERIES = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]


def exported(metric):
    """Names under which a metric is found in Prometheus."""
    return {f"{metric.name}_bucket"} if metric.kind is Kind.HISTOGRAM else {metric.name}


def shown(expression):
    return set(re.findall(r"\$\{prefix\}(\w+)", expression))


def test_panels_and_registry_name_the_same_metrics():
    names = {name for metric in METRICS.values() for name in exported(metric)}
    assert {name for _, expression in QUERIES for name in shown(expression)} == names


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_a_query_groups_and_filters_by_labels_its_metrics_have(title, expression):
    (one, *_) = shown(expression)
    labels = {"le", *METRICS[one.removesuffix("_bucket")].labels}
    used = {name.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for name in group.split(",")}
    used |= set(re.findall(r'[{,](\w+)[!=]="', expression)) | set(re.findall(r'[{,](\w+)="', expression))
    assert used <= labels, title
    assert expression.count("(") == expression.count(")")


def test_every_name_of_ours_in_a_query_has_the_prefix():
    for title, expression in QUERIES:
        assert expression.count("prme_") == len(re.findall(r"\$\{prefix\}prme_", expression)), title


def test_panels_have_ids_places_and_descriptions_of_their_own():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(panels)
    assert all(panel["description"] and panel["targets"] for panel in panels)


def test_the_handbook_explains_every_metric():
    text = (OPS / "README.md").read_text("utf-8")
    assert [name for name in METRICS if f"`{name}`" not in text] == []
    assert set(re.findall(r"\bprme_\w+?(?=_bucket\b|\b)", text)) - {"prme_ray"} <= set(METRICS)
