"""The weighted formula against the golden vectors."""

from __future__ import annotations

from tests.conformance.scores import scored_case as actual

__all__ = ["actual"]
