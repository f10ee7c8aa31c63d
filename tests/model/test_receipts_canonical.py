"""A receipt's text: its exact bytes, reading it back, and that nothing altered is accepted."""

import json
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prme_ray.model.errors import ReceiptRejected
from prme_ray.model.receipts import canonical_json, checked, checksum_of, read_receipt
from stages.replay import replay
from tests.model.receipt_cases import FIRST, FUSED, REQUEST, VERSIONS, receipt

OWNER = "Zoë"
START = (
    '{"schema_version":22,"request_id":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff","user_id":"Zoë",'
    '"query":"what did \\"日本\\" say?","reference_time":"2026-05-04T10:00:00.250000Z","scopes":["personal","project"],'
    '"scoring":{"w_semantic":0.25,'
)
CANDIDATE = (
    '{"node_id":"00000000-0000-4000-8000-00000000000b","scope":"personal",'
    '"content_sha256":"752c8e5b3c4d526886464ced9e06da4a5f01ba377dd683a866862a4ffe4beca6","score":0.899999999995,'
    '"trace":{"semantic_similarity":0.8,"lexical_relevance":0.0,"graph_proximity":0.0,"recency_factor":0.0,'
    '"salience":0.0,"confidence":0.0,"epistemic_weight":0.9,"path_score":0.0,"temporal_affinity":0.0,'
    '"node_type_boost":1.0,"composite_score":0.899999999995},"reranker_score":null,"semantic_relevance":0.8,'
    '"representation":"full","token_cost":9,"in_context":true,"has_content":true}'
)
END = (
    '"ranking_policy":"score_id","execution":{"schema_version":1,"parameters":{"b":[1,2.0,null]},'
    '"features":{"a":{"é":"x"}}}}'
)


@cache
def text_of(version, fused=None):
    return canonical_json(checked(receipt(version, fused=fused)))


def read(text, checksum=None, request_id=REQUEST, owner=OWNER):
    return read_receipt(text, checksum=checksum or checksum_of(text), request_id=request_id, owner=owner)


def refusal(text, **given):
    with pytest.raises(ReceiptRejected) as caught:
        read(text, **given)
    return caught.value.failed_at


def test_the_text_is_canonical():
    text = text_of(22)
    assert text.startswith(START)
    assert CANDIDATE in text
    assert text.endswith(END)
    assert checksum_of("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"


@pytest.mark.parametrize("number", [1e-05, 3.235702749109926e-08, 1e16, 1.0, -0.0, 0.1 + 0.2])
def test_numbers_are_written_as_the_reference_writes_them(number):
    written = {1e-05: "0.00001", 3.235702749109926e-08: "3.235702749109926e-8", 1e16: "1e+16"}
    made = receipt(22)
    made["scoring"]["w_paths"] = number
    assert f'"w_paths":{written.get(number, repr(number))},' in canonical_json(checked(made))


@pytest.mark.parametrize(
    ("version", "fused"),
    [*((version, None) for version in VERSIONS), (21, False), (22, False)],
)
def test_what_is_read_is_what_was_written(version, fused):
    made = checked(receipt(version, fused=fused))
    text = canonical_json(made)
    assert read(text) == made
    assert canonical_json(read(text)) == text
    assert json.loads(text) == receipt(version, fused=fused)


def test_keys_may_come_in_any_order_when_a_receipt_is_made():
    made = receipt(22)
    assert canonical_json(checked(dict(reversed(made.items())))) == text_of(22)
    # A map of the receipt keeps its own order: it is part of what was said.
    made["execution"]["features"] = {"b": 1, "a": 2}
    assert '"features":{"b":1,"a":2}' in canonical_json(checked(made))


def test_a_version_less_receipt_is_of_version_1():
    made = receipt(1)
    del made["schema_version"]
    text = canonical_json(checked(made))
    assert text.startswith('{"request_id"')
    assert "schema_version" not in read(text)
    made["packing"]["multipath_ordering"] = "density"
    with pytest.raises(ReceiptRejected, match=r"version 1 has no packing\.multipath_ordering"):
        checked(made)


def test_it_is_of_the_request_and_the_owner_that_are_asked_for():
    text = text_of(22)
    assert refusal(text, owner="Zoe") == "checksum"
    assert refusal(text, request_id=FIRST) == "checksum"
    assert refusal(text, checksum=checksum_of(text).upper()) == "checksum"


@pytest.mark.parametrize("version", [2, 22])
@settings(max_examples=300)
@given(data=st.data())
def test_another_character_is_never_accepted(version, data):
    text = text_of(version)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(exclude_characters=text[place]))
    changed = text[:place] + other + text[place + 1 :]
    assert refusal(changed, checksum=checksum_of(text)) in ("validation", "checksum")


def test_the_stored_text_itself_must_be_canonical():
    spaced = text_of(22).replace('"scopes":', '"scopes": ')
    assert refusal(spaced) == "checksum"
    twice = text_of(22).replace('"query":', '"query":"x","query":')
    assert refusal(twice, checksum=checksum_of(text_of(22))) == "checksum"


@given(text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")) | st.characters(categories=["Cs"]))
@example(text='{"schema_version":22}')
@example(text="[" * 100_000)
@example(text="NaN")
@example(text=text_of(22).replace('"features":{', '"features":{"x":1e999,'))
@example(text=text_of(22).replace('"features":{', '"features":{"x":-123456789012345678901234567890,'))
@example(text=text_of(22).replace('"semantic_rank":1', f'"semantic_rank":{10**400}'))
@example(text=text_of(22).replace('"token_cost":9', '"token_cost":9.0'))
@example(text=text_of(22).replace("Zoë", "\\ud800"))
def test_any_other_text_is_refused_and_nothing_else_happens(text):
    assert refusal(text, checksum="0" * 64) == "validation"


def test_a_refusal_does_not_tell_what_was_asked():
    for name in ("query", "reference_time", "context_sha256"):
        made = receipt(22) | {name: ["secret"] if name == "query" else "secret"}
        with pytest.raises(ReceiptRejected) as caught:
            checked(made)
        assert name in str(caught.value)
        assert "secret" not in str(caught.value)


def leaves(value, path=()):
    """Yield the place of every value that is no container, and of every empty one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, item in inner for leaf in leaves(item, (*path, key))]
    return found or [path]


OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["full", "rrf", "event_time", "score_path_id", FIRST, "0" * 64, "2026-05-04T10:00:00Z", ""]),
)


@pytest.mark.parametrize("version", [12, 22])
@settings(max_examples=300)
@given(data=st.data())
def test_one_changed_field_is_refused_or_replays_to_what_is_then_said(version, data):
    changed = json.loads(text_of(version))
    path = data.draw(st.sampled_from(leaves(changed)))
    place = changed
    for key in path[:-1]:
        place = place[key]
    if data.draw(st.booleans()):
        del place[path[-1]]
    else:
        place[path[-1]] = data.draw(OTHERS)
    text = json.dumps(changed, ensure_ascii=False, separators=(",", ":"))
    try:
        found = read(text)  # with a checksum of its own, as somebody who may write the log would give it
        replayed = replay(found)
    except ReceiptRejected:
        return
    assert replayed.scores == {item["node_id"]: item["score"] for item in changed["candidates"]}
    assert list(replayed.ranking) == [item["node_id"] for item in changed["candidates"]]
    assert canonical_json(found) == text
    assert ("fusion" in found["scoring"]) == (version in FUSED)
