"""prme-ray: a retrieval engine for the long-term memory of LLM agents.

Names are loaded when they are first used, so that importing a part starts nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prme_ray.answer import Answer
    from prme_ray.async_memory import AsyncMemory
    from prme_ray.client import AsyncClient, Client
    from prme_ray.memory import Memory
    from prme_ray.model import errors
    from prme_ray.model.errors import PrmeRayError
    from prme_ray.model.nodes import Edge, Event, Node
    from prme_ray.model.response import Bundle, Candidate
    from prme_ray.model.retrievals import Replay, Reproduction, Retrieval
    from prme_ray.model.settings import Settings
    from prme_ray.settings_io import load_settings
    from prme_ray.writing import Stored

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncMemory",
    "Bundle",
    "Candidate",
    "Client",
    "Edge",
    "Event",
    "Memory",
    "Node",
    "PrmeRayError",
    "Replay",
    "Reproduction",
    "Retrieval",
    "Settings",
    "Stored",
    "errors",
    "load_settings",
]
__version__ = "0.1.0"

_HOME = {
    "Answer": "prme_ray.answer",
    "AsyncClient": "prme_ray.client",
    "AsyncMemory": "prme_ray.async_memory",
    "Bundle": "prme_ray.model.response",
    "Candidate": "prme_ray.model.response",
    "Client": "prme_ray.client",
    "Edge": "prme_ray.model.nodes",
    "Event": "prme_ray.model.nodes",
    "Memory": "prme_ray.memory",
    "Node": "prme_ray.model.nodes",
    "PrmeRayError": "prme_ray.model.errors",
    "Replay": "prme_ray.model.retrievals",
    "Reproduction": "prme_ray.model.retrievals",
    "Retrieval": "prme_ray.model.retrievals",
    "Settings": "prme_ray.model.settings",
    "Stored": "prme_ray.writing",
    "load_settings": "prme_ray.settings_io",
}
_NEIGHBOURS = ("actors", "jobs", "stages", "storage")


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("prme_ray.model.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'prme_ray' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _refuse_shadowed_packages() -> None:
    # These names are common; another package of the same name earlier on sys.path would be run.
    ours = Path(__file__).resolve().parent.parent
    for name in _NEIGHBOURS:
        found = importlib.util.find_spec(name)
        origin = None if found is None or found.origin is None else Path(found.origin).resolve()
        if origin is None or origin.parent.parent != ours:
            raise ImportError(
                f"prme-ray needs its own package {name!r} beside {ours / 'prme_ray'}, but Python finds "
                f"{origin or 'none'}; remove or rename that package, or put prme-ray's folder first on sys.path"
            )


_refuse_shadowed_packages()
# A library says nothing unless the program asks it to: see docs/architecture.md, "Logging".
logging.getLogger("prme_ray").addHandler(logging.NullHandler())
