"""What the HTTP clients ask and how they read the answers; nothing here does input or output."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, overload
from urllib.parse import quote

import orjson
from pydantic import BaseModel

from prme_ray.answer import Answer
from prme_ray.arguments import Omitted
from prme_ray.health import Health, ShardHealth
from prme_ray.model.errors import InvalidItems, InvalidRequest, InvalidText, NotFound
from prme_ray.model.nodes import Node
from prme_ray.model.response import Bundle, Candidate, Exclusion, Metadata
from prme_ray.model.service_errors import Forbidden
from prme_ray.model.text import check_text, uuid_of
from prme_ray.writing import Stored

__all__ = [
    "Call",
    "ItemsResult",
    "Records",
    "answer_of",
    "batches",
    "edge_call",
    "get_call",
    "health_call",
    "post_call",
    "read_call",
    "retrieve_call",
    "write_call",
]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_FILTERS = frozenset(
    {"scope", "time_from", "time_to", "knowledge_at", "event_time_from", "event_time_to"}
    | {"include_cross_scope", "exclude_node_types", "source_types"}
)
_BATCH_ITEMS = 200
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. Repeating it is harmless: it reads, or it has an idempotency key.

    Attributes:
        method: GET or POST.
        path: Path and query, escaped.
        read: Makes the result of a successful answer's body.
        body: JSON, where it has one.
        headers: Headers of this call alone.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None
    headers: dict[str, str]


class Records(Sequence[M]):
    """Records of an answer, made from JSON when they are looked at."""

    def __init__(self, model: type[M], rows: list[dict[str, Any]]) -> None:
        self._model = model
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> M | list[M]:
        if isinstance(index, slice):
            return [self._model.model_validate(row) for row in self._rows[index]]
        return self._model.model_validate(self._rows[index])

    @property
    def ids(self) -> list[str]:
        """Ids in order, without making the records."""
        return [row["node_id"] for row in self._rows]

    def find(self, node_id: str) -> M | None:
        """Return the record of this memory, or ``None``."""
        return next((self._model.model_validate(row) for row in self._rows if row["node_id"] == node_id), None)

    def counts(self) -> dict[str, int]:
        """Return how many exclusions there are for each reason, most frequent first, then by name."""
        found: dict[str, int] = {}
        for row in self._rows:
            found[row["reason"]] = found.get(row["reason"], 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def write_call(path: str, content: str, arguments: Mapping[str, Any]) -> Call[Stored]:
    """Return the call that stores one memory; ``arguments`` are those of the Python verb."""
    body = {**arguments, "content": check_text(content, "content")}
    return _keyed(path, body, lambda answer: Stored(**orjson.loads(answer)))


def edge_call(source_id: str, target_id: str, edge_type: str, arguments: Mapping[str, Any]) -> Call[str]:
    """Return the call that relates two memories."""
    body = {**arguments, "source_id": source_id, "target_id": target_id, "edge_type": edge_type}
    return _keyed("/v1/edges", body, lambda answer: str(orjson.loads(answer)["edge_id"]))


def retrieve_call(query: str, arguments: Mapping[str, Any]) -> Call[Answer]:
    """Return the call that asks a question."""
    given = _plain(arguments)
    request_id = given.pop("request_id", None)
    filters = {name: given.pop(name) for name in sorted(_FILTERS & given.keys())}
    body = {**given, "query": check_text(query, "query"), "filters": filters}
    headers = {} if request_id is None else {"X-Request-ID": uuid_of(request_id, "request_id")}
    return Call("POST", "/v1/retrieve", answer_of, _encoded(body), headers)


def get_call(kind: str, record_id: str, model: type[M], arguments: Mapping[str, Any]) -> Call[M]:
    """Return the call that reads a memory or an event by id.

    Raises:
        NotFound: text that is no id.
    """
    try:
        subject = uuid_of(record_id, f"{kind}_id")
    except InvalidText:
        raise
    except InvalidRequest:
        raise NotFound(kind="memory" if model is Node else "event", id=record_id) from None
    return read_call(f"/v1/{kind}s/{subject}", model, arguments)


def read_call(path: str, model: type[M], arguments: Mapping[str, Any]) -> Call[M]:
    """Return the call that reads a record; ``arguments`` make the query."""
    query = "&".join(
        f"{name}={quote(str(value), safe='')}" for name, value in _plain(arguments).items() if value is not None
    )
    return Call("GET", f"{path}?{query}", model.model_validate_json, None, {})


def post_call(path: str, model: type[M], arguments: Mapping[str, Any]) -> Call[M]:
    """Return the call that sends ``arguments`` and may be repeated without a key."""
    return Call("POST", path, model.model_validate_json, _encoded(_plain(arguments)), {})


def health_call() -> Call[Health]:
    """Return the call that asks for the state of the store."""
    return Call("GET", "/v1/health", _health, None, {})


def batches(items: Iterable[Any], arguments: Mapping[str, Any]) -> Iterator[Call[list[Stored]]]:
    """Yield calls that store a stream in order, each of a bounded number of items and bytes.

    Raises:
        InvalidRequest: ``items`` is no iterable of items.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidRequest(argument="items", given=type(items).__name__, allowed="an iterable of texts or mappings")
    given = dict(arguments)
    key = given.pop("idempotency_key", None)
    base = uuid.uuid4() if key is None else uuid.UUID(uuid_of(key, "idempotency_key"))
    for number, batch in enumerate(_split(items)):
        # Of one stream the same batches come again, so each has a key that comes again.
        body = {**given, "items": batch, "idempotency_key": str(uuid.uuid5(base, str(number)))}
        yield _keyed("/v1/store/batch", body, _items)


class ItemsResult:
    """Collects what became of the batches of a stream."""

    def __init__(self) -> None:
        self.stored: list[Stored] = []
        self._rejected: list[InvalidRequest] = []
        self._seen = 0

    def add(self, stored: list[Stored]) -> None:
        """Take a batch that was stored whole."""
        self.stored += stored
        self._seen += len(stored)

    def refuse(self, error: InvalidItems) -> None:
        """Take a batch of which some items were refused."""
        for item in error.rejected:
            fields = {**item.fields, "item": self._seen + item.fields["item"]}
            fields.pop("where", None)
            self._rejected.append(type(item)(**fields))
        self.stored += error.stored
        self._seen += len(error.stored) + len(error.rejected)

    def receipts(self) -> list[Stored]:
        """Return all receipts.

        Raises:
            InvalidItems: some items of the stream were refused.
        """
        if self._rejected:
            raise InvalidItems(rejected=tuple(self._rejected), stored=tuple(self.stored))
        return self.stored


def _keyed(path: str, arguments: Mapping[str, Any], read: Callable[[bytes], T]) -> Call[T]:
    body = _plain(arguments)
    key = body.pop("idempotency_key", None)
    key = str(uuid.uuid4()) if key is None else uuid_of(key, "idempotency_key")
    return Call("POST", path, read, _encoded(body), {"Idempotency-Key": key})


def _split(items: Iterable[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for item in items:
        length = len(_encoded(item))
        if batch and (len(batch) >= _BATCH_ITEMS or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


def _items(answer: bytes) -> list[Stored]:
    return [Stored(**item) for item in orjson.loads(answer)["stored"]]


def answer_of(answer: bytes) -> Answer:
    """Return the answer that a body of ``/v1/retrieve`` holds; candidates are made when they are looked at."""
    found = orjson.loads(answer)
    # Sequences of the same records as those that a Memory makes from its tables.
    return Answer(
        bundle=Bundle.model_validate(found["bundle"]),
        results=cast(Any, Records(Candidate, found["results"])),
        excluded=cast(Any, Records(Exclusion, found["excluded"])),
        cross_scope_hints=cast(Any, Records(Candidate, found["cross_scope_hints"])),
        metadata=Metadata.model_validate(found["metadata"]),
    )


def _health(answer: bytes) -> Health:
    details = orjson.loads(answer).get("details")
    if details is None:
        raise Forbidden(detail="the state of the store needs memory:admin")
    details.pop("healthy")
    return Health(**{**details, "shards": [ShardHealth(**shard) for shard in details["shards"]]})


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if not isinstance(value, Omitted)}


def _encoded(body: Any) -> bytes:
    try:
        return orjson.dumps(body, default=_json)
    except TypeError:
        pass  # large integers and lone surrogates, which the service can name
    try:
        return json.dumps(body, default=_json).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(argument="arguments", given=type(error).__name__, allowed="JSON values") from None


def _json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)
