"""Measures the product through its public verbs: ``python -m jobs.benchmark SUITE``."""
