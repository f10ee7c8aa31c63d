"""Lines that a machine reads, and that quote nobody."""

import io
import json
import logging

import pytest

from prme_ray.model.errors import InvalidRequest, StoreBusy, WriteFailed
from prme_ray.observe.logs import FIELDS, LineFormatter, configure_logging

SECRET = "Caroline's blue key"
LOG = logging.getLogger("prme_ray.test")


@pytest.fixture
def stream():
    names = ("prme_ray", "storage", "actors", "stages", "jobs")
    before = {name: (logging.getLogger(name).level, logging.getLogger(name).propagate) for name in names}
    yield io.StringIO()
    for name, (level, propagate) in before.items():
        logger = logging.getLogger(name)
        for handler in [one for one in logger.handlers if isinstance(one.formatter, LineFormatter)]:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate


def text(stream):
    for handler in logging.getLogger("prme_ray").handlers:
        handler.flush()
    return stream.getvalue()


def lines(stream):
    return [json.loads(line) for line in text(stream).splitlines()]


def log_exception(error, cause=None):
    try:
        try:
            if cause is not None:
                raise cause
        finally:
            raise error
    except Exception:
        LOG.exception("it failed", extra={"request_id": "r1"})


def test_a_line_has_time_level_place_and_the_known_fields(stream):
    configure_logging(stream=stream)
    LOG.info("GET %s", "/v1/health", extra={"request_id": "r1", "status": 200, "duration_ms": 1.25, "query": SECRET})
    (line,) = lines(stream)
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "info", "logger": "prme_ray.test", "message": "GET /v1/health",
        "request_id": "r1", "status": 200, "duration_ms": 1.25,
    }  # fmt: skip


def test_a_foreign_exception_tells_type_and_place_only(stream):
    configure_logging(stream=stream)
    log_exception(ValueError(f"bad row: {SECRET}"), cause=KeyError(SECRET))
    assert SECRET not in text(stream)
    (line,) = lines(stream)
    found = line["exception"]
    assert (found["type"], found["cause"]) == ("ValueError", "KeyError")
    assert "test_logs.py" in found["at"][0] and found["at"][0].endswith("log_exception")
    assert "message" not in found


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest(argument="query", given=SECRET, allowed="text"),
        WriteFailed(detail=f"INSERT … {SECRET!r}", durable=False),
    ],
)
def test_our_errors_that_may_quote_tell_their_code_only(stream, error):
    configure_logging(stream=stream)
    log_exception(error)
    assert SECRET not in text(stream)
    assert lines(stream)[0]["exception"]["code"] == error.code


def test_our_errors_that_hold_places_and_numbers_tell_all(stream):
    configure_logging(stream=stream)
    log_exception(StoreBusy(what="the write queue", waited_s=2.0))
    assert "was still busy after 2.0 s" in lines(stream)[0]["exception"]["message"]


def test_configuring_again_replaces_and_never_doubles(stream):
    configure_logging(stream=io.StringIO())
    configure_logging(stream=stream, level="warning")
    LOG.info("not this")
    LOG.warning("this")
    logging.getLogger("storage.test").warning("and this")
    assert [line["message"] for line in lines(stream)] == ["this", "and this"]


def test_nothing_reaches_the_root_logger_where_it_would_be_printed_in_full(stream, caplog):
    configure_logging(stream=stream)
    log_exception(ValueError(SECRET))
    assert caplog.records == []


def test_plain_text_is_one_line_too(stream):
    configure_logging(json=False, stream=stream)
    LOG.info("first\nsecond", extra={"status": 200})
    (line,) = text(stream).splitlines()
    assert line.endswith("info     prme_ray.test: first\\nsecond status=200")


def test_a_line_break_in_a_message_stays_inside_the_line(stream):
    configure_logging(stream=stream)
    LOG.info('first\n{"level": "error"}')
    assert [line["message"] for line in lines(stream)] == ['first\n{"level": "error"}']


def test_an_unknown_level_names_the_levels():
    with pytest.raises(InvalidRequest, match="level='LOUD' is not allowed: give one of DEBUG"):
        configure_logging(level="LOUD")


def test_no_field_holds_text_of_users():
    assert not {"query", "content", "text", "owner", "tenant", "context"} & set(FIELDS)
