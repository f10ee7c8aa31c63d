"""Lines that are written behind the back of whoever logs."""

import io
import logging
import threading
import time

import pytest

from prme_ray.observe.line_writer import LineWriter


@pytest.fixture
def logged():
    """A logger, the handler under test and the stream it writes to."""
    stream = io.StringIO()
    handler = LineWriter(stream)
    logger = logging.Logger("lines")
    logger.addHandler(handler)
    yield logger, handler, stream
    handler.close()


def test_lines_come_by_themselves_a_moment_later(logged):
    logger, _, stream = logged
    logger.info("first %s", "argument")
    logger.info("second")
    assert stream.getvalue() == ""
    deadline = time.monotonic() + 10
    while not stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.getvalue() == "first argument\nsecond\n"
    logger.info("third")
    while stream.getvalue().count("\n") < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.getvalue().endswith("second\nthird\n")


def test_a_warning_is_written_at_once_behind_what_was_said_before(logged):
    logger, _, stream = logged
    logger.info("before")
    logger.warning("now")
    assert stream.getvalue() == "before\nnow\n"


def test_every_line_of_every_thread_once_and_in_its_order(logged):
    logger, handler, stream = logged

    def work(name):
        for number in range(200):
            logger.log(logging.WARNING if number % 50 == 49 else logging.INFO, "%s %d", name, number)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    found = stream.getvalue().splitlines()
    assert len(found) == 800
    for name in "abcd":
        assert [line for line in found if line[0] == name] == [f"{name} {number}" for number in range(200)]


def test_closing_writes_what_waits_and_ends_the_thread(logged):
    logger, handler, stream = logged
    logger.info("last")
    handler.close()
    assert stream.getvalue() == "last\n"
    assert not any(thread.name == "prme-ray-log" for thread in threading.enumerate())
    logger.info("after the end")
    assert stream.getvalue() == "last\nafter the end\n"
    handler.close()


def test_what_cannot_be_written_or_formatted_stops_nobody(logged, monkeypatch):
    logger, handler, stream = logged
    failed = []
    monkeypatch.setattr(handler, "handleError", failed.append)
    logger.warning("%d is no number", "this")
    logger.warning("fine")
    assert stream.getvalue() == "fine\n"
    stream.close()
    logger.warning("nowhere to go")
    assert [record.msg for record in failed] == ["%d is no number", "nowhere to go"]


def test_filters_count(logged):
    logger, handler, stream = logged
    handler.addFilter(lambda record: "secret" not in record.msg)
    logger.warning("secret")
    logger.warning("public")
    assert stream.getvalue() == "public\n"
