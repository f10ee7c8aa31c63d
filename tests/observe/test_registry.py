"""The registry, read back through Prometheus's own parser."""

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from prme_ray.observe.registry import SOURCE_FAILURES, Kind, Metric, Registry

ASKED = Metric("asked_total", Kind.COUNTER, "Questions.", ("route", "status"))
LENGTH = Metric("queue_length", Kind.GAUGE, "Waiting.")
TIME = Metric("time_seconds", Kind.HISTOGRAM, "Time.", ("stage",), (0.5, 1.0))


@pytest.fixture
def registry():
    return Registry([ASKED, LENGTH, TIME])


def parsed(registry):
    families = text_string_to_metric_families(registry.text().decode())
    return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}


def test_an_empty_registry_exports_nothing(registry):
    assert registry.text() == b"\n"


def test_counters_and_labels_survive_the_parser(registry):
    registry.add("asked_total", 2, 'a"b\\c\nd', "200")
    registry.add("asked_total", 1, 'a"b\\c\nd', "200")
    assert parsed(registry) == {("asked_total", ("route", 'a"b\\c\nd'), ("status", "200")): 3.0}


def test_a_value_on_a_bound_belongs_to_its_bucket(registry):
    with registry.lock:
        for value in (0.2, 0.5, 0.7, 3.0):
            registry.series("time_seconds", "rank").observe(value)
    found = parsed(registry)
    stage = ("stage", "rank")
    assert [found["time_seconds_bucket", ("le", bound), stage] for bound in ("0.5", "1.0", "+Inf")] == [2, 3, 4]
    assert found["time_seconds_count", stage] == 4
    assert found["time_seconds_sum", stage] == 0.2 + 0.5 + 0.7 + 3.0


def test_gauges_of_several_sources_add_up_and_vanish_with_them(registry):
    leave = registry.watch(lambda: registry.add("queue_length", 3))
    registry.watch(lambda: registry.add("queue_length", 4))
    assert parsed(registry) == parsed(registry) == {("queue_length",): 7.0}
    leave()
    assert parsed(registry) == {("queue_length",): 4.0}


def test_a_source_that_raises_is_counted_and_hides_nothing(registry):
    def broken():
        raise OSError("the disk says: secret text")

    registry.watch(broken)
    registry.watch(lambda: registry.add("queue_length", 1))
    assert parsed(registry) == {("queue_length",): 1.0, (SOURCE_FAILURES.name,): 1.0}


def test_too_many_series_share_one(registry):
    for number in range(600):
        registry.add("asked_total", 1, f"/{number}", "200")
    found = parsed(registry)
    assert len(found) == 501
    assert found["asked_total", ("route", "other"), ("status", "other")] == 100


def test_wrong_labels_are_refused(registry):
    with pytest.raises(ValueError, match=r"asked_total has labels \('route', 'status'\), 1 were given"):
        registry.add("asked_total", 1, "/")


def test_no_count_is_lost_between_threads(registry):
    def work():
        for _ in range(2_000):
            registry.add("asked_total", 1, "/", "200")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        registry.collect()
    assert parsed(registry) == {("asked_total", ("route", "/"), ("status", "200")): 8_000.0}
