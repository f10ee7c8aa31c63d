"""One retrieval: check, read one snapshot, run the flow, log, answer."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from prme_ray.answer import Answer, AnswerContext, build_answer
from prme_ray.executors.engine import Executor, Run
from prme_ray.executors.inline import InlineExecutor
from prme_ray.helpers import NO_HELPERS, Helpers
from prme_ray.in_force import InForce, in_force
from prme_ray.model.enums import Path, RetrievalMode
from prme_ray.model.errors import EncoderMismatch, InvalidRequest, ReadOnlyStore, SnapshotGone
from prme_ray.model.request import Request, make_request
from prme_ray.model.settings import Settings
from prme_ray.model.text import uuid_of
from prme_ray.model.times import micros
from prme_ray.observe.metrics import observe_recovery
from prme_ray.observe.spans import trace_run
from prme_ray.pipeline import Place
from prme_ray.records.encode import OP_TYPE, Setup, encode_failure, encode_record
from prme_ray.records.features import features_of
from storage.encoder.cache import CachedEncoder
from storage.owner_state import OwnerState
from storage.records import Filters, LateOperation, OwnerKey
from storage.store import Store
from storage.view import OwnerView

if TYPE_CHECKING:  # Ray is only loaded where the flow runs on it
    from actors.remote_store import RemoteStore

__all__ = ["Retriever"]

_SNAPSHOTS = 5
"""Snapshots tried before a retrieval gives up against a stream of writes."""

# What counts as the owner's memories: AUDIT alone sees retired ones.
_VISIBLE = {mode: Filters(include_inactive=mode is RetrievalMode.AUDIT) for mode in RetrievalMode}


class Retriever:
    """Answers questions from a store.

    Args:
        store: Where the memories are.
        encoder: The configured encoder.
        settings: Settings in force; a request may override a part.
        clock: Returns the current UTC time.
        new_id: Returns a fresh UUID as text.
        helpers: Cross-encoder and rewriter of questions, where the settings use them.
        executor: What runs the flow; plain calls in this process when ``None``.
    """

    def __init__(
        self,
        store: Store | RemoteStore,
        *,
        encoder: CachedEncoder,
        settings: Settings,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        helpers: Helpers = NO_HELPERS,
        executor: Executor | None = None,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._clock = clock
        self._new_id = new_id
        self._helpers = helpers
        self._executor: Executor = InlineExecutor() if executor is None else executor
        self._resources = {
            Place.EMBEDDER: encoder,
            Place.RERANKER: helpers.cross_encoder,
            Place.REFORMULATOR: helpers.reformulate,
        }
        self.in_force = in_force(settings)
        self._empty = OwnerState(0, dimension=encoder.provider.dimension).view()

    @property
    def encoder(self) -> CachedEncoder:
        """The encoder behind its cache."""
        return self._encoder

    @property
    def nothing(self) -> OwnerView:
        """The state of an owner of whom nothing was ever stored."""
        return self._empty

    @property
    def reranker(self) -> str | None:
        """Identity of the cross-encoder, where one is on."""
        return self._helpers.reranker

    def retrieve(self, query: str, *, owner: str, tenant: str, request_id: str | None = None, **options: Any) -> Answer:
        """Return the answer to one question; see ``Memory.retrieve`` for the options.

        Raises:
            InvalidRequest: an argument is not allowed.
            EncoderMismatch: stored vectors come from another encoder and the policy is ``reject``.
            EncoderRejected: the cross-encoder broke its contract.
            ReadOnlyStore: ``strict_receipts`` in a process that only reads.
            Exception: what the cross-encoder raised, or a search of an alternate under ``max_signals``;
                with ``strict_receipts`` also why the record could not be made durable.
        """
        started = time.perf_counter()
        force = self.in_force
        request = make_request(
            query,
            request_id=self._new_id() if request_id is None else uuid_of(request_id, "request_id"),
            tenant=tenant,
            owner=owner,
            now=self._clock(),
            settings=force.settings,
            **options,
        )
        key = OwnerKey(request.tenant, request.owner)
        if force.settings.strict_receipts and self._store.read_only:
            raise ReadOnlyStore(path=str(self._store.path))
        if isinstance(request.as_of, datetime):
            request = dataclasses.replace(request, as_of=self._store.number_at(key, micros(request.as_of)))
        try:
            failures = self._mismatch()
            found, view, run = self._run(key, request, failures)
        except Exception as error:
            setup = self.setup(request, force, snapshot=0, generation=0, mismatch=isinstance(error, EncoderMismatch))
            self._log(key, request, partial(encode_failure, request, error, setup=setup))
            raise
        trace_run(run.started, run.timings)
        logged = time.perf_counter()
        setup = self.setup(
            request,
            force,
            snapshot=view.owner_seq,
            generation=view.generation or self._store.reading_generation(key),
            mismatch=Path.VECTOR in failures,
        )
        persisted = self._log(key, request, partial(self.record, request, run, view=view, force=force, setup=setup))
        timings = {name: seconds * 1e3 for name, seconds in run.timings.items()}
        timings["logging"] = (time.perf_counter() - logged) * 1e3
        timings["total"] = (time.perf_counter() - started) * 1e3
        return self.answer(
            request, run, view=view, known=found, force=force, setup=setup, persisted=persisted, timings_ms=timings
        )

    def execute(
        self,
        request: Request,
        *,
        view: OwnerView,
        force: InForce,
        failures: Mapping[str, str],
        given: Mapping[str, Any] | None = None,
        resources: Mapping[Place, Any] | None = None,
    ) -> Run:
        """Run the flow once.

        Args:
            request: The request.
            view: The owner's state.
            force: Settings in force.
            failures: Channels that count as failed, with the reason.
            given: Values of steps that are known and not to be made.
            resources: Instead of this retriever's own.

        Raises:
            SnapshotGone: a channel's process is past the view's number.
        """
        values = {"request": request, "settings": force.settings, "tools": force.tools, "failures": dict(failures)}
        return self._executor.run(
            {**values, **(given or {})},
            view=view,
            resources=self._resources | dict(resources or {}),
            disabled=force.disabled,
        )

    def setup(self, request: Request, force: InForce, *, snapshot: int, generation: int, mismatch: bool) -> Setup:
        """Return what answers a request, for its record."""
        return Setup(
            snapshot=snapshot,
            generation=generation,
            encoder=self._encoder.identity,
            reranker=self._helpers.reranker,
            fingerprint=force.fingerprint,
            settings=force.canonical,
            scoring_version=force.version_of(request.scoring),
            embedding_mismatch=mismatch,
            features=self._features,
        )

    def record(self, request: Request, run: Run, *, view: OwnerView, force: InForce, setup: Setup) -> bytes:
        """Return the record of an answered request."""
        return encode_record(request, run.values, view=view, known=force.tools.lines.known, setup=setup)

    def answer(
        self,
        request: Request,
        run: Run,
        *,
        view: OwnerView,
        known: OwnerView | None,
        force: InForce,
        setup: Setup,
        persisted: bool,
        timings_ms: dict[str, float],
    ) -> Answer:
        """Return the answer made of an executed flow; ``known`` is ``None`` for an owner never written."""
        context = AnswerContext(
            snapshot=setup.snapshot,
            encoder=setup.encoder,
            reranker=setup.reranker,
            owner_known=known is not None,
            owner_memories=int(view.eligible(_VISIBLE[request.mode]).rows.sum()),
            fingerprint=setup.fingerprint,
            scoring_version=setup.scoring_version,
            embedding_mismatch=setup.embedding_mismatch,
        )
        return build_answer(
            request, force.settings, run.values, context=context, receipt_persisted=persisted, timings_ms=timings_ms
        )

    @cached_property
    def _features(self) -> dict[str, Any]:
        return features_of(self._encoder.provider, reranker=self._helpers.reranker)

    def _run(
        self, key: OwnerKey, request: Request, failures: dict[str, str]
    ) -> tuple[OwnerView | None, OwnerView, Run]:
        """Return the view asked for (none: unknown owner), the view searched, and what the flow made."""
        attempt = 0
        while True:
            found = self._view(key, request.as_of)
            view = self._empty if found is None else found
            try:
                return found, view, self.execute(request, view=view, force=self.in_force, failures=failures)
            except SnapshotGone:
                # Writes have gone on: a channel's process is past this number. The next one is newer.
                observe_recovery("retry")
                attempt += 1
                if attempt == _SNAPSHOTS:
                    raise

    def _view(self, key: OwnerKey, as_of: Any) -> OwnerView | None:
        if as_of is None:
            return self._store.view(key)
        newest = self._store.newest(key)
        if as_of > newest:
            allowed = f"0 to {newest}, the owner's newest number, or a time"
            raise InvalidRequest(argument="as_of", given=as_of, allowed=allowed)
        if newest == 0:
            return None  # an owner never written has no past either
        if as_of == 0:
            return self._empty  # on Ray too: no actor is asked, and a coordinator's own view has no vectors
        return self._store.view_at(key, as_of, past=True)

    def _mismatch(self) -> dict[str, str]:
        stored = self._store.mismatched_encoder
        if stored is None:
            return {}
        if self.in_force.settings.embedding_mismatch_policy == "reject":
            raise EncoderMismatch(stored=stored, configured=self._encoder.identity)
        return {Path.VECTOR: "embedding_mismatch"}

    def _log(self, key: OwnerKey, request: Request, make: Callable[[], bytes]) -> bool:
        """Put a request on record; return whether it will be. A process that only reads cannot."""
        settings = self.in_force.settings
        if not settings.log_retrievals or self._store.read_only:
            return False
        operation = LateOperation(owner=key, op_type=OP_TYPE, target=request.request_id, make=make)
        return self._store.submit_operation(key, operation, wait=settings.strict_receipts)
