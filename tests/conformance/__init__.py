"""Runs golden files against the stages: ``python -m tests.conformance DIR [--json OUT]``."""
