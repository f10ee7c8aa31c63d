"""Requests made up from the OpenAPI document: every answer is one that the document tells of."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from prme_ray import Memory
from prme_ray.http.app import create_app
from tests.memory.tools import FEW_SHARDS, WordEncoder

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
OPERATIONS = [
    (path, method) for path, methods in create_app(lambda: None).openapi()["paths"].items() for method in methods
]


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    with Memory.open(tmp_path_factory.mktemp("schema") / "s", settings=FEW_SHARDS, encoder=WordEncoder()) as memory:
        memory.store("Oscar is a cat", owner="dana")
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(memory), headers={"Host": "127.0.0.1"})


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_request_of_the_schema_breaks_the_service(schema, path, method):
    @given(schema[path][method].as_strategy())
    @settings(
        max_examples=20,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    def ask(case):
        case.call_and_validate(base_url="http://127.0.0.1", checks=CHECKS)

    ask()


def test_the_document_has_every_route():
    assert {path for path, _ in OPERATIONS} == {
        "/v1/store",
        "/v1/store/batch",
        "/v1/nodes",
        "/v1/edges",
        "/v1/retrieve",
        "/v1/nodes/{id}",
        "/v1/events/{id}",
        "/v1/retrievals",
        "/v1/retrievals/{id}",
        "/v1/retrievals/{id}/replay",
        "/v1/retrievals/{id}/reproduce",
        "/v1/chain",
        "/v1/relevance",
        "/v1/relevance/{feedback_id}",
        "/v1/answer-citations",
        "/v1/answer-citations/{citation_id}",
        "/v1/health",
        "/livez",
        "/readyz",
        "/metrics",
    }


def test_every_route_may_be_asked_under_a_wrong_name():
    document = create_app(lambda: None).openapi()
    assert "ErrorBody" in document["components"]["schemas"]
    answers = [operation["responses"] for path in document["paths"].values() for operation in path.values()]
    assert all("421" in found for found in answers)
    assert len(answers) == len(OPERATIONS)
