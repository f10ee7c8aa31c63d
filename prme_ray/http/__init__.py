"""The flow over HTTP."""
