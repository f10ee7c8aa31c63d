"""Where the flow runs when it runs on Ray; no setting here changes an answer."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.settings.base import SettingsModel

__all__ = ["ClusterSettings"]

_Share = Annotated[float, Field(ge=0, le=1024)]


class ClusterSettings(SettingsModel):
    """Actors of the ``ray`` and ``compiled`` executors."""

    groups: Annotated[int, Field(ge=1, le=1024)] = 1
    """Shard groups; each has one writer and one actor a channel. Changing it moves no data."""
    embedders_min: Annotated[int, Field(ge=1, le=256)] = 1
    """Embedding actors that are always there."""
    embedders_max: Annotated[int, Field(ge=1, le=256)] = 2
    """Most embedding actors; they come under load and leave when idle."""
    embedder_idle_s: Annotated[float, Field(gt=0, le=86400)] = 60.0
    """Seconds without work after which an embedding actor beyond the minimum ends."""
    embedder_cpus: _Share = 0.5
    """CPUs an embedding actor asks Ray for."""
    embedder_gpus: _Share = 0.0
    """GPUs an embedding actor asks Ray for; a provider that needs one asks for it by itself."""
    question_embedding: Literal["vector", "pool"] = "vector"
    """Where questions are embedded: beside the group's vectors, which saves a call, or by the pool, as texts to
    store always are. With GPUs it is the pool."""
    graph_actor_from: Annotated[int, Field(ge=0)] = 5000
    """Memories of an owner from which on the graph is searched by the group's actor; the coordinator holds graphs
    too and searches a smaller one in less time than a call takes. 0: always the actor."""
    channel_cpus: _Share = 0.0
    """CPUs a channel actor asks Ray for; they work a millisecond a question."""
    writer_cpus: _Share = 0.0
    """CPUs a writer asks Ray for."""
    group_resources: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Custom Ray resources by group number: what puts a group on a node of your choice."""
    stages: dict[str, Literal["actor", "task"]] = Field(default_factory=dict)
    """Pure steps (by name, see docs/architecture.md) that run on an actor or task of their own."""
    queue: Annotated[int, Field(ge=1, le=100_000)] = 256
    """Most calls waiting for one actor; more are refused as busy."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Longest wait for an actor's answer, its restart included."""
    start_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 180.0
    """Longest wait for all actors to start, and for a change of layout."""
    compiled_graphs: Annotated[int, Field(ge=1, le=1024)] = 2
    """Most compiled graphs of a coordinator at once, one a group; questions of other groups go by calls."""
    compiled_idle_s: Annotated[float, Field(gt=0, le=86400)] = 5.0
    """Seconds without questions after which compiled graphs are taken down: their actors poll."""

    @model_validator(mode="after")
    def _pool_bounds(self) -> Self:
        if self.embedders_max < self.embedders_min:
            raise InvalidSettings(
                argument="embedders_max", given=self.embedders_max, allowed=f"at least {self.embedders_min}"
            )
        for group in self.group_resources:
            if not group.isdigit() or int(group) >= self.groups:
                raise InvalidSettings(
                    argument="group_resources", given=group, allowed=f"group numbers from 0 to {self.groups - 1}"
                )
        return self
