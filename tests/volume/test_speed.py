"""Ratios that must hold on any machine: a bulk load to the bare encoder, a large owner's write to a small one's."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest

from jobs.benchmark.corpus import lines
from prme_ray import Settings
from prme_ray.encoders import built_in_encoder
from prme_ray.memory import Memory
from tests.crash.hash_encoder import HashEncoder

LEAST_OF_THE_ENCODERS_RATE = 0.8
MOST_TIMES_A_SMALL_OWNERS_WRITE = 3.0


def cpu_of(call):
    """Return the CPU seconds of all threads of the process while ``call`` runs."""
    started = time.process_time()
    call()
    return time.process_time() - started


def best_rate_ratio(folder, *, count, rounds):
    """Return the CPU of the encoder alone over that of ``store_many``, of the best round.

    Where both keep the cores busy this is the ratio of their rates, and where a core is idle the
    rates are nearer to each other. Machines that are shared stretch wall times, never CPU times.
    """
    encoder = built_in_encoder()
    ratios = []
    with (
        Memory.open(folder, settings={"encoder": {"cache_entries": 0}}) as memory,
        ThreadPoolExecutor(Settings().encoder.workers) as pool,
    ):
        memory.store_many(lines(40), owner="warm")
        for number in range(rounds):
            items = list(lines(count, seed=number))
            texts = [item["content"] for item in items]
            gc.collect()
            alone = cpu_of(lambda texts=texts: list(pool.map(lambda text: encoder.embed([text]), texts)))
            together = cpu_of(lambda items=items, owner=f"o{number}": memory.store_many(items, owner=owner))
            ratios.append(alone / together)
            if ratios[-1] >= LEAST_OF_THE_ENCODERS_RATE:
                break
    print("store_many over the bare encoder:", ratios)
    return max(ratios)


def test_store_many_keeps_up_with_the_encoder(tmp_path):
    assert best_rate_ratio(tmp_path / "store", count=150, rounds=5) >= LEAST_OF_THE_ENCODERS_RATE


def cpu_of_a_write(memory, owner, item):
    return cpu_of(lambda: memory.store(**item, owner=owner))


def compare_writes(folder, *, small, large, rounds=3):
    """Return the least ratio of the median CPU of a write to a large owner over one to a small owner."""
    ratios = []
    with Memory.open(folder, encoder=HashEncoder()) as memory:
        for owner, count in (("small", small), ("large", large)):
            memory.store_many(lines(count), owner=owner)
            memory.retrieve("now it is in memory", owner=owner)
        memory.flush()  # no batch of the bulk load in between
        for number in range(rounds):
            items = list(lines(40, seed=number + 1))
            gc.collect()
            pairs = [(cpu_of_a_write(memory, "large", item), cpu_of_a_write(memory, "small", item)) for item in items]
            ratios.append(median(one for one, _ in pairs) / median(other for _, other in pairs))
            if ratios[-1] <= MOST_TIMES_A_SMALL_OWNERS_WRITE:
                break
    print("write to a large over a small owner:", ratios)
    return min(ratios)


def test_a_write_costs_no_more_for_a_larger_owner(tmp_path):
    assert compare_writes(tmp_path / "store", small=50, large=1500) <= MOST_TIMES_A_SMALL_OWNERS_WRITE


@pytest.mark.slow
def test_a_write_costs_no_more_for_a_much_larger_owner(tmp_path):
    assert compare_writes(tmp_path / "store", small=50, large=15_000) <= MOST_TIMES_A_SMALL_OWNERS_WRITE
