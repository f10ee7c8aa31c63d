"""State of a store: per shard, do the log and every channel hold the same memories?"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from storage.parts import Part
from storage.shard import Shard
from storage.store import Store

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["Health", "ShardHealth", "health_of", "resident_counts", "shard_states"]

_PART_OF = {"nodes": Part.RECORDS, "edges": Part.EDGES, "vectors": Part.VECTORS, "lexical": Part.TEXT}


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """State of one shard.

    Attributes:
        shard: Its number.
        sequence: Newest log entry.
        log: Entries of the log by kind, and how many have a vector.
        projected: The same counted in the LanceDB tables, and in the log up to their position; what
            the tables have yet to take (``lag`` entries) is read from the log meanwhile.
        resident: Counts over the owners in memory: what the vector, lexical and graph channels hold,
            beside what the log says they must.
        projector: Position, lag, files, fragments, last compaction, last error.
        committer: Queue length, failures.
        files: Files of the shard on disk.
        disagreements: What does not agree; empty for a healthy shard.
    """

    shard: int
    sequence: int
    log: dict[str, int]
    projected: dict[str, dict[str, int]]
    resident: dict[str, Any]
    projector: dict[str, Any]
    committer: dict[str, Any]
    files: int
    disagreements: list[str]


@dataclass(frozen=True, slots=True)
class Health:
    """State of a store. ``healthy`` is false as soon as one count disagrees or a part has failed.

    ``coordinator`` is there where the flow runs on actors: records waiting and lost, recoveries, groups.
    """

    path: str
    store_id: str
    virtual_shards: int
    read_only: bool
    mismatched_encoder: str | None
    resident_bytes: int
    evictions: int
    shards: list[ShardHealth]
    coordinator: dict[str, Any] | None = None

    @property
    def healthy(self) -> bool:
        """Whether every shard's counts agree and nothing has failed."""
        return not any(shard.disagreements for shard in self.shards)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"healthy": self.healthy, **asdict(self)}


def health_of(store: Store | RemoteStore) -> Health:
    """Return the state of every shard that has been written."""
    return Health(
        path=str(store.path),
        store_id=store.catalog.store_id,
        virtual_shards=store.catalog.virtual_shards,
        read_only=store.read_only,
        mismatched_encoder=store.mismatched_encoder,
        resident_bytes=store.residents.nbytes(),
        evictions=store.residents.evictions,
        shards=shard_states(store) if isinstance(store, Store) else _remote_shards(store),
        coordinator=None if isinstance(store, Store) else store.state(),
    )


def shard_states(store: Store) -> list[ShardHealth]:
    """Return the state of every shard of a process."""
    return [_shard_health(shard, store) for shard in store.existing_shards()]


def resident_counts(store: Store) -> dict[int, dict[str, Any]]:
    """Return what a process holds of its resident owners beside what the log says it must, by shard."""
    return {shard.number: _residents(shard, store, shard.reading_generation()) for shard in store.existing_shards()}


def _remote_shards(store: RemoteStore) -> list[ShardHealth]:
    """Return what the writers say of their shards, with what the channels' actors hold of the owners."""
    shards = [state for group in store.look("writer", shard_states) for state in group]
    for kind in store.handles.deployment.channels:
        for held in store.look(kind, resident_counts):
            for state in shards:
                if state.shard in held:
                    state.resident[kind] = held[state.shard]
                    state.disagreements.extend(f"{kind}: {text}" for text in _differences(held[state.shard]))
    return sorted(shards, key=lambda state: state.shard)


def _differences(resident: dict[str, Any]) -> list[str]:
    return [
        f"resident {name}: the log has {pair['log']}, the channel {pair['channel']}"
        for name, pair in resident.items()
        if isinstance(pair, dict) and pair["log"] != pair["channel"]
    ]


def _shard_health(shard: Shard, store: Store) -> ShardHealth:
    generation = shard.reading_generation()
    shard.nodes.refresh()
    shard.edges.refresh()
    # Counted up to one number, so that a batch that arrives meanwhile changes nothing.
    position = min(shard.nodes.position, shard.edges.position)
    expected = shard.log.counts(upto=position, generation=generation)
    found = {
        "node": shard.nodes.count(upto=position),
        "edge": shard.edges.count(upto=position),
        "vectors": shard.nodes.count_with_vector(upto=position),
    }
    wanted = {name: expected[name] for name in found}
    disagreements = [
        f"{name}: the log has {wanted[name]} up to {position}, the tables {found[name]}"
        for name in found
        if wanted[name] != found[name]
    ]
    resident = _residents(shard, store, generation)
    disagreements += _differences(resident)
    projector = {} if shard.projector is None else shard.projector.state()
    committer = shard.committer_state()
    for part, state in (("projector", projector), ("committer", committer)):
        if state.get("last_error"):
            disagreements.append(f"{part}: {state['last_error']}")
    return ShardHealth(
        shard=shard.number,
        sequence=shard.log.last_seq(),
        log=shard.log.counts(generation=generation),
        projected={"tables": found, "log": wanted},
        resident=resident,
        projector=projector,
        committer=committer,
        # os.walk passes over folders that a compaction removes meanwhile.
        files=sum(len(names) for _, _, names in os.walk(shard.path)),
        disagreements=disagreements,
    )


def _residents(shard: Shard, store: Store, generation: int) -> dict[str, Any]:
    totals = {name: {"log": 0, "channel": 0} for name in ("nodes", "edges", "vectors", "lexical")}
    owners = store.residents.of_shard(shard.number)
    for owner_no, state in owners.items():
        view = state.view()
        counts = shard.log.counts(upto=view.seq, owner_no=owner_no, generation=generation)
        held = view.counts()
        totals["nodes"]["log"] += counts["node"]
        totals["nodes"]["channel"] += held["nodes"] + held["structural"]
        totals["edges"]["log"] += counts["edge"]
        totals["edges"]["channel"] += held["edges"]
        totals["vectors"]["log"] += counts["vectors"]
        totals["vectors"]["channel"] += held["vectors"]
        # Every memory that has text has a vector, so the two channels must hold as many.
        totals["lexical"]["log"] += counts["vectors"]
        totals["lexical"]["channel"] += held["documents"]
    kept = {name: pair for name, pair in totals.items() if _PART_OF[name] in store.parts}
    return {"owners": len(owners), **kept}
