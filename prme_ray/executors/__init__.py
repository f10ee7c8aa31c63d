"""Runners of the one declared flow."""
