"""Every error keeps its fields and its message when it crosses a process border."""

import copy
import inspect
import pickle
import re
import string

import pytest

from prme_ray.model import errors
from prme_ray.model.errors import (
    InvalidItems,
    InvalidRequest,
    InvalidText,
    NotFound,
    PrmeRayError,
    StoreBusy,
    TerminalError,
    TransientError,
)

REFUSED = (
    InvalidText(argument="text", given="a NUL character at character 3", allowed="remove it", item=4),
    InvalidRequest(argument="confidence", given=2, allowed="0 to 1"),
)
# Fields that say more than "one value for each name in the template".
FIELDS = {
    "InvalidItems": {"rejected": REFUSED, "stored": ("receipt-1",)},
    "InvalidRequest": {"argument": "limit", "given": -1, "allowed": "a positive number"},
    "InvalidText": {"argument": "text", "given": "a lone surrogate at character 0", "allowed": "remove it", "item": 7},
    "NotFound": {"kind": "memory", "id": "日本"},
    "PrmeRayError": {"detail": "odd {braces} stay"},
    "StoreLocked": {"path": "store", "pid": 12, "host": "box", "since": "2026-01-01T00:00:00Z"},
    "WriteFailed": {"detail": "disk full", "durable": False},
}


def template_names(kind):
    return [(name, spec) for _, name, spec, _ in string.Formatter().parse(kind.template) if name]


def fields_of(kind):
    plain = {name: 1.25 if spec else f"some {name}" for name, spec in template_names(kind)}
    return FIELDS.get(kind.__name__, plain)


def tree(kind):
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child)


CLASSES = sorted(set(tree(PrmeRayError)), key=lambda kind: kind.__name__)
every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def made(kind):
    return kind(**fields_of(kind))


def test_every_error_is_exported():
    assert [kind.__name__ for kind in CLASSES] == sorted(errors.__all__)


@every_class
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickling_keeps_class_fields_and_message(kind, protocol):
    before = made(kind)
    after = pickle.loads(pickle.dumps(before, protocol))
    assert type(after) is kind
    assert (str(after), after.args) == (str(before), before.args)
    assert set(after.fields) == set(before.fields)
    for name, value in fields_of(kind).items():
        # Errors inside an error have no equality of their own; their text says whether they are the same.
        assert repr(getattr(after, name)) == repr(getattr(before, name)) == repr(value)


@every_class
def test_a_copy_is_as_good_as_the_original(kind):
    assert str(copy.copy(made(kind))) == str(copy.deepcopy(made(kind))) == str(made(kind))


@every_class
def test_the_message_says_every_field_of_the_template(kind):
    message = str(made(kind))
    assert message
    for name, spec in template_names(kind):
        assert format(made(kind).fields[name], spec) in message


@every_class
def test_the_documented_fields_are_the_template_s(kind):
    documented = re.search(r"Fields: (.+?)\.(?:\s|$)", inspect.getdoc(kind), re.DOTALL)
    if documented and kind not in {InvalidText, PrmeRayError}:
        assert set(re.findall(r"``(\w+)``", documented.group(1))) == {name for name, _ in template_names(kind)}


def test_codes_are_unique_and_statuses_are_errors():
    leaves = [kind for kind in CLASSES if kind not in {PrmeRayError, TransientError, TerminalError}]
    codes = [kind.code for kind in leaves]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[A-Z_]+", code) for code in codes)
    assert all(400 <= kind.http_status <= 599 for kind in leaves)


def test_an_error_says_whether_to_retry():
    assert all(
        issubclass(kind, TransientError) != issubclass(kind, TerminalError)
        for kind in CLASSES
        if kind is not PrmeRayError
    )
    assert issubclass(StoreBusy, TransientError)
    assert issubclass(InvalidRequest, TerminalError)


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="colour"):
        _ = NotFound(kind="memory", id="x").colour


def test_numbers_are_shown_as_a_person_writes_them():
    assert str(StoreBusy(what="the write queue", waited_s=1.26)).startswith(
        "the write queue was still busy after 1.3 s"
    )


def test_text_that_is_refused_is_not_shown():
    assert str(REFUSED[0]) == "text of item 4 has a NUL character at character 3: remove it"
    single = InvalidText(argument="text", given="type int", allowed="give a string")
    assert (str(single), single.item) == ("text of the call has type int: give a string", None)


def test_refused_items_say_how_many_were_stored():
    error = InvalidItems(rejected=REFUSED, stored=("receipt-1",))
    assert "(2 refused, 1 stored)" in str(error)
    assert [type(item) for item in pickle.loads(pickle.dumps(error)).rejected] == [InvalidText, InvalidRequest]
