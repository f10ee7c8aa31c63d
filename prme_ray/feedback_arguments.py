"""The arguments of ``record_relevance`` and ``record_citations``, checked (digest b §3.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from prme_ray.model.errors import InvalidRequest
from prme_ray.model.feedback import CitationMethod, CitationsGiven, RelevanceGiven, RelevanceMethod, Surface
from prme_ray.model.request import flag, one_of
from prme_ray.model.text import check_text, uuid_of

__all__ = ["ANSWER_ID_LIMIT", "CITED_LIMIT", "citations_given", "relevance_given"]

ANSWER_ID_LIMIT = 512
"""Longest ``answer_id``, in characters."""
CITED_LIMIT = 1000
"""Most memories that one answer cites."""
_SHA256 = re.compile("[0-9a-f]{64}")


def relevance_given(request_id: Any, labels: Any, *, feedback_id: Any, surface: Any, method: Any) -> RelevanceGiven:
    """Return a checked judgement.

    Raises:
        InvalidRequest: an argument is not allowed, whatever the retrieval was.
    """
    if not isinstance(labels, Mapping) or not labels:
        given = "nothing" if isinstance(labels, Mapping) else type(labels).__name__
        raise InvalidRequest(argument="labels", given=given, allowed="a mapping of one or more ids to True or False")
    wanted = _ids(labels, "labels")
    found = {node: flag(value, f"labels.{node}") for node, value in zip(wanted, labels.values(), strict=True)}
    return RelevanceGiven(
        feedback_id=uuid_of(feedback_id, "feedback_id"),
        request_id=uuid_of(request_id, "request_id"),
        labels=dict(sorted(found.items())),
        surface=one_of(Surface, surface, "surface"),
        method=one_of(RelevanceMethod, method, "method"),
    )


def citations_given(
    request_id: Any, cited_node_ids: Any, *, citation_id: Any, answer_id: Any, answer_sha256: Any, method: Any
) -> CitationsGiven:
    """Return checked citations.

    Raises:
        InvalidRequest: an argument is not allowed, whatever the retrieval was.
    """
    if not isinstance(cited_node_ids, list | tuple) or len(cited_node_ids) > CITED_LIMIT:
        given = type(cited_node_ids).__name__
        raise InvalidRequest(
            argument="cited_node_ids", given=given, allowed=f"a list of up to {CITED_LIMIT} ids; an empty one for none"
        )
    name = check_text(answer_id, "answer_id")
    if not name.strip() or len(name) > ANSWER_ID_LIMIT:
        raise InvalidRequest(
            argument="answer_id", given=name[:40], allowed=f"1 to {ANSWER_ID_LIMIT} characters, not all of them blank"
        )
    return CitationsGiven(
        citation_id=uuid_of(citation_id, "citation_id"),
        request_id=uuid_of(request_id, "request_id"),
        answer_id=name,
        cited_node_ids=_ids(cited_node_ids, "cited_node_ids"),
        answer_sha256=None if answer_sha256 is None else _digest(answer_sha256),
        method=one_of(CitationMethod, method, "method"),
    )


def _ids(given: Iterable[Any], argument: str) -> list[str]:
    found = [uuid_of(node, argument) for node in given]
    seen: set[str] = set()
    for node in found:
        if node in seen:  # in two spellings, where it is a mapping's key
            raise InvalidRequest(argument=argument, given=node, allowed="every id once")
        seen.add(node)
    return found


def _digest(given: Any) -> str:
    text = check_text(given, "answer_sha256").lower()
    if not _SHA256.fullmatch(text):
        raise InvalidRequest(argument="answer_sha256", given=given, allowed="a SHA-256 as 64 hex digits")
    return text
