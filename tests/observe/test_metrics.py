"""What a real store's answers and health become."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from prme_ray import Memory
from prme_ray.encoders import built_in_encoder
from prme_ray.model.settings import Settings
from prme_ray.observe.catalog import METRICS
from prme_ray.observe.metrics import Meters
from prme_ray.observe.registry import Registry
from prme_ray.pipeline import FLOW
from storage.encoder.cache import CachedEncoder

SECRET = "Caroline: my cat Oscar hides the blue key."
QUESTION = "Where is the blue key?"


@pytest.fixture
def meters():
    return Meters(Registry(METRICS))


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory.open(tmp_path_factory.mktemp("observe") / "memory") as opened:
        who = {"owner": "dana-the-owner", "tenant": "acme-the-tenant"}
        opened.store(SECRET, session_id="s1", **who)
        opened.store_node(SECRET + " Twice.", node_type="fact", epistemic_type="hypothetical", **who)
        yield opened


def samples(meters):
    families = text_string_to_metric_families(meters.metrics_text().decode())
    return [one for family in families for one in family.samples]


def value(meters, name, **labels):
    found = [one.value for one in samples(meters) if one.name == name and labels.items() <= one.labels.items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def ask(memory, question=QUESTION, **options):
    return memory.retrieve(question, owner="dana-the-owner", tenant="acme-the-tenant", **options)


def test_an_answer_counts_every_step_channel_and_outcome(meters, memory):
    answer = ask(memory)
    meters.observe_answer(answer)
    for step in FLOW:
        assert value(meters, "prme_stage_seconds_count", stage=step.name, place="here") == 1
    assert value(meters, "prme_stage_seconds_sum", stage="lexical") == answer.metadata.timings_ms["lexical"] / 1e3
    assert value(meters, "prme_stage_seconds_count", stage="lexical", channel="LEXICAL") == 1
    assert value(meters, "prme_retrieval_seconds_count", outcome="results") == 1
    for channel, count in answer.metadata.candidates_generated.items():
        assert value(meters, "prme_candidates_sum", channel=channel) == count


def test_time_spent_on_an_actor_is_told_apart(meters, memory):
    answer = ask(memory)
    answer.metadata.timings_ms["vector.away"] = 2.0
    meters.observe_answer(answer)
    assert value(meters, "prme_stage_seconds_sum", stage="vector", channel="VECTOR", place="away") == 0.002


def test_exclusions_of_filter_and_packing_count_by_reason(meters, memory):
    meters.observe_answer(ask(memory))
    assert value(meters, "prme_exclusions_total", reason="epistemic_filtered:hypothetical") == 1
    meters.observe_answer(ask(memory, token_budget=60))
    assert value(meters, "prme_exclusions_total", reason="epistemic_filtered:hypothetical") == 2
    assert value(meters, "prme_exclusions_total", reason="budget") == 1


def test_numbers_in_a_reason_make_no_series(meters, memory):
    answer = ask(memory)
    answer.metadata.exclusion_counts.update({f"unverified_below_threshold:0.{n}<=0.30": 1 for n in range(10, 30)})
    meters.observe_answer(answer)
    assert value(meters, "prme_exclusions_total", reason="unverified_below_threshold") == 20


def test_a_failed_channel_counts(meters, memory):
    answer = ask(memory)
    answer.metadata.backend_failures["VECTOR"] = "backend_error"
    meters.observe_answer(answer)
    assert value(meters, "prme_channel_failures_total", channel="VECTOR", reason="backend_error") == 1


def test_requests_count_by_route_and_status(meters):
    meters.observe_request("/v1/retrieve", 200, 0.004)
    meters.observe_request("/v1/retrieve", 503, 0.004)
    assert value(meters, "prme_http_requests_total", route="/v1/retrieve", status="503") == 1
    assert value(meters, "prme_http_request_seconds_count", route="/v1/retrieve") == 2


def test_health_is_read_when_metrics_are(meters, memory):
    meters.watch_health(memory.health)
    memory.flush()
    assert value(meters, "prme_projection_lag_entries") == 0
    assert value(meters, "prme_unhealthy_shards") == 0
    before = value(meters, "prme_resident_bytes")
    memory.store("Caroline: another line.", owner="dana-the-owner", tenant="acme-the-tenant")
    assert value(meters, "prme_resident_bytes") > before > 0


def test_totals_kept_elsewhere_become_counters(meters):
    encoder = CachedEncoder(built_in_encoder(Settings().encoder), entries=10)
    meters.watch_encoder(encoder)
    encoder.embed_documents(["one", "two"])
    assert value(meters, "prme_encoder_cache_misses_total") == 2
    encoder.embed_documents(["one", "three"])
    assert value(meters, "prme_encoder_cache_misses_total") == 3
    assert value(meters, "prme_encoder_cache_hits_total") == 1


def test_a_total_that_starts_again_never_lowers_a_counter(meters):
    class Cache:
        hits, misses = 5, 9

    cache = Cache()
    meters.watch_encoder(cache)
    assert value(meters, "prme_encoder_cache_hits_total") == 5
    cache.hits = 2  # another process took over
    assert value(meters, "prme_encoder_cache_hits_total") == 7


def test_queue_and_repairs(meters):
    class Gate:
        in_progress, waiting = 3, 7

    meters.watch_gate(Gate())
    meters.observe_recovery("retry")
    assert value(meters, "prme_requests_in_progress") == 3
    assert value(meters, "prme_requests_waiting") == 7
    assert value(meters, "prme_recoveries_total", what="retry") == 1


def test_nothing_names_who_or_what(meters, memory):
    meters.watch_health(memory.health)
    meters.observe_answer(ask(memory))
    text = meters.metrics_text().decode().lower()
    for word in ("dana", "acme", "oscar", "blue", "key", "s1"):
        assert word not in text
    assert {label for metric in METRICS for label in metric.labels} <= {
        "route", "status", "outcome", "stage", "channel", "place", "reason", "what"
    }  # fmt: skip
