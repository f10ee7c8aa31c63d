"""One retrieval: check, read one snapshot, run the flow, log, answer."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from prme_ray.answer import Answer, AnswerContext, build_answer
from prme_ray.executors.engine import Executor, Run
from prme_ray.executors.inline import InlineExecutor
from prme_ray.helpers import NO_HELPERS, Helpers
from prme_ray.model.enums import Path, RetrievalMode
from prme_ray.model.errors import EncoderMismatch, SnapshotGone
from prme_ray.model.request import Request, make_request
from prme_ray.model.settings import Settings
from prme_ray.model.settings.scoring import ScoringSettings
from prme_ray.model.text import uuid_of
from prme_ray.observe.metrics import observe_recovery
from prme_ray.observe.spans import trace_run
from prme_ray.pipeline import Place
from prme_ray.retrieval_log import OP_TYPE, Setup, encode_failure, encode_record
from prme_ray.steps.values import Tools
from prme_ray.tokens import counter
from stages.line_cache import LineCache
from storage.encoder.cache import CachedEncoder
from storage.owner_state import OwnerState
from storage.records import Filters, Operation, OwnerKey
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
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._helpers = helpers
        self._executor: Executor = InlineExecutor() if executor is None else executor
        self._resources = {
            Place.EMBEDDER: encoder,
            Place.RERANKER: helpers.cross_encoder,
            Place.REFORMULATOR: helpers.reformulate,
        }
        self._disabled = frozenset(settings.disabled_channels)
        self._tools = Tools(counter(settings.packing.tokenizer), LineCache())
        self._fingerprint = settings.fingerprint()
        self._version = _scoring_version(settings.scoring)
        self._empty = OwnerState(0, dimension=encoder.provider.dimension).view()

    @property
    def encoder(self) -> CachedEncoder:
        """The encoder behind its cache."""
        return self._encoder

    def retrieve(self, query: str, *, owner: str, tenant: str, request_id: str | None = None, **options: Any) -> Answer:
        """Return the answer to one question; see ``Memory.retrieve`` for the options.

        Raises:
            InvalidRequest: an argument is not allowed.
            EncoderMismatch: stored vectors come from another encoder and the policy is ``reject``.
            EncoderRejected: the cross-encoder broke its contract.
            Exception: what the cross-encoder raised, or a search of an alternate under ``max_signals``.
        """
        started = time.perf_counter()
        request = make_request(
            query,
            request_id=self._new_id() if request_id is None else uuid_of(request_id, "request_id"),
            tenant=tenant,
            owner=owner,
            now=self._clock(),
            settings=self._settings,
            **options,
        )
        key = OwnerKey(request.tenant, request.owner)
        try:
            failures = self._mismatch()
            found, view, run = self._run(key, request, failures)
        except Exception as error:
            setup = self._setup(request, snapshot=0, mismatch=isinstance(error, EncoderMismatch))
            self._log(key, request, partial(encode_failure, request, error, setup=setup))
            raise
        trace_run(run.started, run.timings)
        logged = time.perf_counter()
        setup = self._setup(request, snapshot=view.owner_seq, mismatch=Path.VECTOR in failures)
        known = self._tools.lines.known
        persisted = self._log(key, request, partial(encode_record, request, run.values, known=known, setup=setup))
        timings = {name: seconds * 1e3 for name, seconds in run.timings.items()}
        timings["logging"] = (time.perf_counter() - logged) * 1e3
        timings["total"] = (time.perf_counter() - started) * 1e3
        context = AnswerContext(
            snapshot=setup.snapshot,
            encoder=setup.encoder,
            reranker=setup.reranker,
            owner_known=found is not None,
            owner_memories=int(view.eligible(_VISIBLE[request.mode]).rows.sum()),
            fingerprint=setup.fingerprint,
            scoring_version=setup.scoring_version,
            embedding_mismatch=setup.embedding_mismatch,
        )
        return build_answer(
            request, self._settings, run.values, context=context, receipt_persisted=persisted, timings_ms=timings
        )

    def _run(
        self, key: OwnerKey, request: Request, failures: dict[str, str]
    ) -> tuple[OwnerView | None, OwnerView, Run]:
        """Return the owner's newest view (none: unknown owner), the view searched, and what the flow made."""
        attempt = 0
        while True:
            found = self._store.view(key)
            view = self._empty if found is None else found
            given = {"request": request, "settings": self._settings, "tools": self._tools, "failures": dict(failures)}
            try:
                return (
                    found,
                    view,
                    self._executor.run(given, view=view, resources=self._resources, disabled=self._disabled),
                )
            except SnapshotGone:
                # Writes have gone on: a channel's process is past this number. The next one is newer.
                observe_recovery("retry")
                attempt += 1
                if attempt == _SNAPSHOTS:
                    raise

    def _mismatch(self) -> dict[str, str]:
        stored = self._store.mismatched_encoder
        if stored is None:
            return {}
        if self._settings.embedding_mismatch_policy == "reject":
            raise EncoderMismatch(stored=stored, configured=self._encoder.identity)
        return {Path.VECTOR: "embedding_mismatch"}

    def _setup(self, request: Request, *, snapshot: int, mismatch: bool) -> Setup:
        own = request.scoring is self._settings.scoring
        return Setup(
            snapshot=snapshot,
            encoder=self._encoder.identity,
            reranker=self._helpers.reranker,
            fingerprint=self._fingerprint,
            scoring_version=self._version if own else _scoring_version(request.scoring),
            embedding_mismatch=mismatch,
        )

    def _log(self, key: OwnerKey, request: Request, encode: Callable[[], bytes]) -> bool:
        """Put a request on record; return whether it will be. A process that only reads cannot."""
        if not self._settings.log_retrievals or self._store.read_only:
            return False
        operation = Operation(owner=key, op_type=OP_TYPE, target=request.request_id, payload=encode())
        return self._store.submit_operation(key, operation)


def _scoring_version(scoring: ScoringSettings) -> str:
    """Return 12 hex digits over every scoring value in a fixed order (digest a §6.1)."""
    text = json.dumps(scoring.model_dump(mode="json"), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
