"""What a call of an actor ends in, as this package's errors."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from prme_ray.model.errors import ServiceUnavailable

__all__ = ["result_of"]


def result_of(asked: Any, what: str, timeout_s: float) -> Any:
    """Return what a call gave.

    Args:
        asked: Reference to the result, or a list of them.
        what: Whose it is, for the message.
        timeout_s: Longest wait, in seconds.

    Raises:
        ServiceUnavailable: the actor is gone for good, or no answer came in time.
        Exception: what the method raised.
    """
    try:
        return ray.get(asked, timeout=timeout_s)
    except RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, Exception) else error) from None
    except (GetTimeoutError, RayActorError) as error:
        raise ServiceUnavailable(what=f"actor {what}", detail=type(error).__name__) from error
