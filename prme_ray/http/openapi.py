"""The OpenAPI document: bodies are read by the service itself, so it must be told of them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from prme_ray.http.bodies import (
    BatchBody,
    CitationsBody,
    EdgeBody,
    ErrorBody,
    NodeBody,
    Owned,
    RelevanceBody,
    RetrieveBody,
    StoreBody,
)

__all__ = ["body_of", "describe", "errors_of"]

_BODIES: list[type[BaseModel]] = [
    BatchBody,
    CitationsBody,
    EdgeBody,
    NodeBody,
    Owned,
    RelevanceBody,
    RetrieveBody,
    StoreBody,
]
_REFERENCE = "#/components/schemas/{model}"

_WRONG_HOST = {
    "description": "A service without keys was asked under a name that is not this machine's own.",
    "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(model=ErrorBody.__name__)}}},
}
"""Answered before a route is looked for, so all have it."""


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return what a route says about its body."""
    schema = {"$ref": _REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def errors_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route says about its errors."""
    return {status: {"model": ErrorBody} for status in statuses}


def describe(app: FastAPI) -> None:
    """Make the application's document complete."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            _, schemas = models_json_schema([(model, "validation") for model in _BODIES], ref_template=_REFERENCE)
            found.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
            for operation in (operation for path in found["paths"].values() for operation in path.values()):
                operation["responses"].setdefault("421", _WRONG_HOST)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
