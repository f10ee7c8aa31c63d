"""Commands: ``python -m jobs.<name>``."""
