"""What a caller may lend to retrieval: a cross-encoder, and a rewriter of questions."""

from __future__ import annotations

from dataclasses import dataclass

from prme_ray.model.errors import InvalidSettings
from prme_ray.model.protocols import CrossEncoder, Reformulator
from prme_ray.model.settings import Settings

__all__ = ["NO_HELPERS", "Helpers", "helpers_of"]


@dataclass(frozen=True, slots=True)
class Helpers:
    """The helpers that the settings in force use; ``None`` for those they do not.

    Attributes:
        cross_encoder: Orders the best candidates.
        reranker: Its identity, ``name@version``.
        reformulate: Words a question differently.
    """

    cross_encoder: CrossEncoder | None = None
    reranker: str | None = None
    reformulate: Reformulator | None = None


NO_HELPERS = Helpers()


def helpers_of(settings: Settings, *, cross_encoder: CrossEncoder | None, reformulate: Reformulator | None) -> Helpers:
    """Return the helpers that ``settings`` switch on; one that is lent and not switched on stays unused.

    Raises:
        InvalidSettings: an option is on without its helper, or a helper is something else.
    """
    if cross_encoder is not None and not _is_cross_encoder(cross_encoder):
        raise InvalidSettings(
            argument="cross_encoder",
            given=type(cross_encoder).__name__,
            allowed="an object with nonblank texts name and version and a method score(query, texts)",
        )
    if reformulate is not None and not callable(reformulate):
        raise InvalidSettings(
            argument="reformulate", given=type(reformulate).__name__, allowed="a callable of a query and a count"
        )
    if settings.rerank.enabled and cross_encoder is None:
        raise InvalidSettings(
            argument="rerank.enabled",
            given=True,
            allowed="False, or cross_encoder=... to Memory.open: none is built in",
        )
    if settings.reformulation.enabled and reformulate is None:
        raise InvalidSettings(
            argument="reformulation.enabled",
            given=True,
            allowed="False, or reformulate=... to Memory.open: none is built in",
        )
    used = cross_encoder if settings.rerank.enabled else None
    return Helpers(
        cross_encoder=used,
        reranker=None if used is None else f"{used.name}@{used.version}",
        reformulate=reformulate if settings.reformulation.enabled else None,
    )


def _is_cross_encoder(value: object) -> bool:
    if not isinstance(value, CrossEncoder) or not callable(value.score):
        return False
    return all(isinstance(text, str) and bool(text.strip()) for text in (value.name, value.version))
