"""One shard: its log, its projections, its committer, and the owners it has in memory."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prme_ray.model.errors import EncoderMismatch, InvalidRequest, ReadOnlyStore, SnapshotExpired, SnapshotGone
from prme_ray.model.settings import StorageSettings
from prme_ray.model.times import micros
from storage.commit import GroupCommit
from storage.log import Log
from storage.owner_loader import OwnerLoader
from storage.owner_state import OwnerState
from storage.parts import ALL_PARTS, Part
from storage.past import PastReader, PastStates
from storage.projector import Projector
from storage.records import Admission, Appended, LateOperation, LogRow, Operation, OperationRow, OwnerKey
from storage.residents import ResidentKey, Residents
from storage.table_place import TablePlace
from storage.tables import EdgeTable, NodeTable
from storage.view import OwnerView

__all__ = ["EncoderIdentity", "Shard"]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which encoder makes the vectors (decision 14)."""

    identity: str
    model_name: str
    dimension: int


class Shard:
    """Owner of one shard's files.

    A writer appends through one committer thread: a write is acknowledged when it is durable in
    the log *and* the resident owner it belongs to can be read with it. The LanceDB tables follow
    in batches; until they have, the log's tail is read in their place.

    Args:
        path: Folder of the shard; created when missing and ``writable``.
        tables: Where its node and its edge table are.
        number: Shard number.
        log: Its log, opened for writing where ``writable``; closed with the shard.
        settings: Storage settings.
        encoder: Identity of the configured encoder.
        residents: Memory shared by all shards of the process.
        past: The same for states at earlier numbers.
        clock: Returns the current UTC time.
        writable: Whether this process holds the shard's lock.
        parts: What is kept of the owners in memory; a writer keeps all.
    """

    def __init__(
        self,
        path: Path,
        *,
        tables: TablePlace,
        number: int,
        log: Log,
        settings: StorageSettings,
        encoder: EncoderIdentity,
        residents: Residents[ResidentKey],
        past: PastStates,
        clock: Callable[[], datetime],
        writable: bool,
        parts: frozenset[Part] = ALL_PARTS,
    ) -> None:
        self._parts = parts
        self.path = path
        self.number = number
        self.writable = writable
        self._settings = settings
        self._encoder = encoder
        self._residents = residents
        self._apply_lock = threading.Lock()
        self._load_lock = threading.Lock()
        if writable:
            path.mkdir(parents=True, exist_ok=True)
        self.log = log
        generations = self.log.generations()
        self._generation = generations[-1].generation if generations else None
        # Of the stored vectors: with another encoder the store can still be read, without its vectors.
        self._dimension = generations[-1].dimension if generations else encoder.dimension
        self.nodes = NodeTable.open(tables.below("nodes"), dimension=self._dimension, read_only=not writable)
        self.edges = EdgeTable.open(tables.below("edges"), read_only=not writable)
        self._loader = OwnerLoader(
            log,
            self.nodes,
            self.edges,
            parts=parts,
            dimension=self._dimension,
            table_generation=self.reading_generation,
        )
        self._past = PastReader(number, self._loader, kept=past)
        self._clock = clock
        self._writing_generation: int | None = None
        self._epoch = 0
        self.projector: Projector | None = None
        self._committer: GroupCommit | None = None
        if writable:
            self._start_writing()

    def _start_writing(self) -> None:
        settings = self._settings
        self._epoch = self.log.begin_epoch()
        self.projector = Projector(
            self.log,
            self.nodes,
            self.edges,
            epoch=self._epoch,
            batch_rows=settings.projection_batch_rows,
            idle_s=settings.projection_idle_s,
            compact_after_fragments=settings.compact_after_fragments,
            generation=self._generation or 1,
            clock=self._clock,
        )
        self.projector.catch_up()
        self._committer = GroupCommit(
            self.log,
            epoch=self._epoch,
            clock=self._clock,
            on_commit=self._apply,
            max_rows=settings.group_commit_rows,
            queue_limit=settings.write_queue,
            timeout_s=settings.write_timeout_s,
        )

    # -- encoder generation ---------------------------------------------------------------------

    def _current_generation(self) -> int | None:
        generations = self.log.generations()
        return generations[-1].generation if generations else None

    def stored_encoder(self) -> str | None:
        """Return the identity of the encoder that made this shard's vectors, or ``None`` so far."""
        generations = self.log.generations()
        return generations[-1].identity if generations else None

    def writing_generation(self) -> int:
        """Return the generation new vectors belong to, registering the first one.

        Raises:
            EncoderMismatch: the shard's vectors come from another encoder.
        """
        # Only the one writer adds generations, so what holds once holds until it closes.
        if self._writing_generation is None:
            stored = self.stored_encoder()
            if stored is not None and stored != self._encoder.identity:
                raise EncoderMismatch(stored=stored, configured=self._encoder.identity)
            self._writing_generation = self._generation = self.log.register_generation(
                self._encoder.identity,
                self._encoder.model_name,
                self._encoder.dimension,
                created_at=micros(self._clock()),
                epoch=self._epoch,
            )
        return self._writing_generation

    # -- writing --------------------------------------------------------------------------------

    def submit(self, admission: Admission, *, patient: bool = False) -> Future[Appended]:
        """Queue a write; the future resolves when it is durable and visible; see :class:`GroupCommit`."""
        if self._committer is None:
            raise ReadOnlyStore(path=str(self.path))
        return self._committer.submit(admission, patient=patient)

    def record(self, operation: Operation | LateOperation) -> Future[OperationRow]:
        """Queue a record; the future resolves when it is durable; see :class:`GroupCommit`."""
        if self._committer is None:
            raise ReadOnlyStore(path=str(self.path))
        return self._committer.record(operation)

    def submit_operation(self, operation: Operation | LateOperation, *, wait: bool = False) -> bool:
        """Queue a record for the next commit; return whether it can be relied on; see :class:`GroupCommit`."""
        if self._committer is None:
            return False
        return self._committer.submit_operation(operation, wait=wait)

    def settle(self) -> None:
        """Return when everything queued before is committed or has failed."""
        if self._committer is not None:
            self._committer.flush()

    def _apply(self, appended: list[Appended]) -> None:
        by_owner: dict[int, list[LogRow]] = defaultdict(list)
        for item in appended:
            by_owner[item.owner_no].extend(item.rows)
        last = 0
        with self._apply_lock:
            for owner_no, rows in by_owner.items():
                last = max([last, *(row.seq for row in rows)])
                state = self._residents.peek((self.number, owner_no))
                if state is not None:
                    self._bring_up(state, owner_no, rows)
        self._residents.trim()
        if last and self.projector is not None:
            self.projector.notify(last)

    def _bring_up(self, state: OwnerState, owner_no: int, rows: list[LogRow]) -> None:
        # The owner's own numbers have no gaps, so a commit whose answer was lost on the way shows here.
        new = sorted((row for row in rows if row.seq > state.seq), key=lambda row: row.seq)
        if new and new[0].owner_seq != state.owner_seq + 1:
            new = self.log.read(after=state.seq, owner_no=owner_no, generation=self.reading_generation())
        state.apply(new)

    # -- reading --------------------------------------------------------------------------------

    def owner_no(self, owner: OwnerKey) -> int | None:
        """Return the owner's number, or ``None`` when the shard has never heard of them."""
        return self.log.owner_no(owner)

    def has_entries(self, owner_no: int) -> bool:
        """Return whether anything was ever stored for the owner."""
        state = self._residents.peek((self.number, owner_no))
        return (state is not None and state.owner_seq > 0) or self.log.last_of(owner_no).owner_seq > 0

    def view(self, owner_no: int) -> OwnerView:
        """Return the owner's newest committed state as an immutable view."""
        key = (self.number, owner_no)
        state = self._residents.get(key) or self._load(owner_no)
        if not self.writable:
            self._follow(state)
        return state.view()

    def view_at(self, owner_no: int, owner_seq: int) -> OwnerView:
        """Return the owner's state at one number of theirs, following the log just so far.

        Raises:
            SnapshotGone: this process is ahead of the number and no longer has its view, or the log
                does not have the number yet.
        """
        state = self._residents.get((self.number, owner_no)) or self._load(owner_no)
        with self._apply_lock:
            missing = owner_seq - state.owner_seq
            if missing > 0:
                self._loader.follow(state, generation=self.reading_generation(), limit=missing)
        view = state.view_at(owner_seq)
        if view is None:
            raise SnapshotGone(wanted=owner_seq, newest=state.owner_seq)
        return view

    def past_view(self, owner_no: int, owner_seq: int, *, generation: int | None = None) -> OwnerView:
        """Return the owner's state at any number of theirs, 0 included; the present state is left as it is.

        Args:
            owner_no: The owner.
            owner_seq: The number.
            generation: Encoder generation of the vectors; ``None``: the one that is read.

        Raises:
            InvalidRequest: the owner never had that number.
            SnapshotExpired: the log has no vectors of the generation any more.
        """
        reading = self.reading_generation()
        wanted = reading if generation is None else generation
        if wanted != reading and all(found.generation != wanted for found in self.log.generations()):
            raise SnapshotExpired(wanted=owner_seq, generation=wanted)
        same = wanted == reading or Part.VECTORS not in self._parts
        state = self._residents.get((self.number, owner_no)) if same else None
        view = None if state is None else state.view_at(owner_seq)
        if view is None:
            newest = self.log.last_of(owner_no).owner_seq
            if not 0 <= owner_seq <= newest:
                raise InvalidRequest(argument="owner_seq", given=owner_seq, allowed=f"0 to {newest}, the newest")
            if same and 0 < owner_seq == newest:
                with suppress(SnapshotGone):  # more was written meanwhile
                    view = self.view_at(owner_no, owner_seq)
        return (view or self._past.view(owner_no, owner_seq, generation=wanted)).as_past(wanted)

    def _follow(self, state: OwnerState) -> None:
        # A reading process is told nothing: it looks at the log before every answer.
        with self._apply_lock:
            if self.log.last_of(state.owner_no).seq > state.seq:
                self._loader.follow(state, generation=self.reading_generation())

    def reading_generation(self) -> int:
        """Return the encoder generation whose vectors are read; 1 before the first vector."""
        if self._generation is None:
            self._generation = self._current_generation()
        return self._generation or 1

    def _load(self, owner_no: int) -> OwnerState:
        with self._load_lock:
            key = (self.number, owner_no)
            state = self._residents.get(key)
            if state is not None:
                return state
            generation = self.reading_generation()
            state = self._loader.newest(
                owner_no,
                generation=generation,
                vector_bytes=self._settings.resident_bytes,
                lexical_dir=lambda memories: self._lexical_dir(owner_no, memories),
            )
            with self._apply_lock:
                # Between the reading and this lock a commit may have passed the state by.
                self._loader.follow(state, generation=generation)
                self._residents.put(key, state)
            return state

    def _lexical_dir(self, owner_no: int, documents: int) -> Path | None:
        # Only the writer may open an index on disk for writing; readers rebuild theirs in memory.
        if not self.writable or documents <= self._settings.lexical_ram_documents:
            return None
        return self.path / "lexical" / f"{owner_no:08d}"

    # -- care -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything committed to the LanceDB tables now."""
        if self.projector is not None:
            self.projector.flush()

    def close(self) -> None:
        """Stop writing, flush the projections and let go of the files."""
        try:
            if self._committer is not None:
                self._committer.close()
            if self.projector is not None:
                self.projector.close()
        finally:
            self.log.close()

    def committer_state(self) -> dict[str, Any]:
        """Return queue length, failures and broken mark of the committer, for health."""
        return {} if self._committer is None else self._committer.state()
