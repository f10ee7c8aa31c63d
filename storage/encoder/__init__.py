"""The embedding encoder: provider, admission checks, cache."""
