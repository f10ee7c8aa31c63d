"""Which of an owner's memories a request may see, decided in one place for every channel.

RFC-0005 §4 and §6; digest a §3.9; decisions 7, 8 and 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from prme_ray.model.enums import ACTIVE_STATES, LifecycleState, NodeType, Scope, code
from prme_ray.model.times import micros
from storage.records import Filters

__all__ = ["Mask", "eligible"]

_WINDOW_EXEMPT = (NodeType.ENTITY, NodeType.PREFERENCE)


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The outcome of :func:`eligible`; valid for the view it was made from.

    Indexing reads the memories' mask: ``mask[rows]``.

    Attributes:
        rows: Memories a channel may return, in admission order, shape (memories,).
        carriers: Graph vertices a path may lead through: those memories, and the structural hubs of
            the owner, shape (vertices,).
        whole: Whether every memory is allowed.
        filters: What it was made from.
    """

    rows: npt.NDArray[np.bool_]
    carriers: npt.NDArray[np.bool_]
    whole: bool
    filters: Filters

    def __getitem__(self, key: Any) -> Any:
        return self.rows[key]

    def __len__(self) -> int:
        return len(self.rows)

    def sum(self) -> int:
        """Return the number of memories a channel may return."""
        return int(np.count_nonzero(self.rows))


def eligible(vertices: Mapping[str, npt.NDArray[Any]], memories: npt.NDArray[np.int64], *, filters: Filters) -> Mask:
    """Return the mask of a request.

    Active memories, and with ``include_inactive`` all others the log holds; inside the scopes; inside
    the validity window, of which entities and preferences are exempt; created by ``knowledge_at``;
    and inside the event-time bounds, where the creation time stands in for a missing event time.
    Structural hubs belong to every scope and have no time of their own: only lifecycle and
    ``knowledge_at`` hold for them.

    Args:
        vertices: Columns ``structural``, ``scope``, ``node_type``, ``lifecycle``, ``created``,
            ``valid_from``, ``valid_to`` (largest integer: open) and ``happened``; times in
            microseconds since the epoch.
        memories: Vertex of every memory in admission order.
        filters: What the request may see.
    """
    lifecycle = vertices["lifecycle"]
    states = LifecycleState if filters.include_inactive else ACTIVE_STATES
    allowed = _table(states, LifecycleState)[lifecycle]
    if filters.knowledge_at is not None:
        allowed &= vertices["created"] <= micros(filters.knowledge_at)

    inside = np.ones(len(lifecycle), dtype=bool)
    if filters.scopes is not None:
        inside &= _table(filters.scopes, Scope)[vertices["scope"]]
    if filters.time_from is not None or filters.time_to is not None:
        exempt = _table(_WINDOW_EXEMPT, NodeType)[vertices["node_type"]]
        if filters.time_from is not None:
            inside &= exempt | (vertices["valid_to"] > micros(filters.time_from))
        if filters.time_to is not None:
            inside &= exempt | (vertices["valid_from"] <= micros(filters.time_to))
    if filters.event_time_from is not None:
        inside &= vertices["happened"] >= micros(filters.event_time_from)
    if filters.event_time_to is not None:
        inside &= vertices["happened"] <= micros(filters.event_time_to)

    carriers = allowed & (inside | vertices["structural"])
    rows = carriers[memories]
    for array in (carriers, rows):
        array.flags.writeable = False
    return Mask(rows, carriers, bool(rows.all()), filters)


def _table(members: Iterable[StrEnum], enum: type[StrEnum]) -> npt.NDArray[np.bool_]:
    table = np.zeros(len(enum), dtype=bool)
    table[[code(member) for member in members]] = True
    return table
