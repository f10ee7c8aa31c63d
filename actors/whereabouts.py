"""Where an actor is."""

from __future__ import annotations

import os
from typing import Any

import ray

__all__ = ["whereabouts"]


def whereabouts() -> dict[str, Any]:
    """Return process id and node id of the calling actor."""
    return {"pid": os.getpid(), "node": ray.get_runtime_context().get_node_id()}
