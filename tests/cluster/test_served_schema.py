"""Requests made up from the OpenAPI document, through HAProxy and Serve to a replica with its actors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from prme_ray import Client
from tests.cluster.serving import serving
from tests.http.test_schema import CHECKS, OPERATIONS

_EXAMPLES = 10


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("served-schema") / "store") as running:
        with Client(running.address) as client:
            client.store("Oscar is a cat", owner="dana")
        yield schemathesis.openapi.from_url(f"{running.address}/openapi.json")


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_request_of_the_schema_breaks_what_serves_it(schema: Any, path: str, method: str) -> None:
    @given(schema[path][method].as_strategy())
    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()
