"""Suite ``latency``: what a retrieval and a write cost, beside the bare encoder in the same run.

Machines differ and are shared, so every figure that matters is a ratio of two measurements taken
in turns in one process. CPU is the time of all threads of the process. The work behind a retrieval (its
record) is in the ratio of means, which counts blocks whole; the ratio of medians sees little of it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from jobs.benchmark.corpus import lines, questions
from prme_ray import Memory, Settings
from prme_ray.encoders import built_in_encoder
from prme_ray.model.protocols import EmbeddingProvider
from prme_ray.pipeline import FLOW

__all__ = ["print_latency", "run_latency"]

_WARM_UP = 20
_BLOCK = 10
"""Embeddings, then as many retrievals: records are made behind a retrieval and must not count as embedding."""
_RECORDED_S = 0.4
"""Time in which the records of a block are written."""
_SINGLE_STORES = 60
_BULK = 400
_POOL = 1_500
"""Candidates of the run that times the stages from merge to pack: every memory of its owner is one."""


def run_latency(sizes: Sequence[int], *, questions: int, folder: Path, settings: Settings) -> dict[str, Any]:
    """Return the report for owners of these sizes.

    Args:
        sizes: Memories of the owner.
        questions: Retrievals measured a size.
        folder: Empty folder for the stores.
        settings: Settings of the stores; without a cache of vectors, or questions cost no embedding.
    """
    encoder = built_in_encoder(settings.encoder)
    report: dict[str, Any] = {"settings_fingerprint": settings.fingerprint(), "sizes": {}}
    report["encoder"] = encoder.model_version
    for size in sizes:
        with Memory.open(folder / f"memory-{size}", settings=settings) as memory:
            memory.store_many(tqdm(lines(size), total=size, desc=f"storing {size}", unit="memory"), owner="bench")
            report["sizes"][str(size)] = _retrievals(memory, encoder, questions)
    with Memory.open(folder / "writes", settings=settings) as memory:
        report["writes"] = _writes(memory, encoder, settings.encoder.workers)
    wide = settings.packing.model_copy(update={"vector_k": _POOL, "lexical_k": _POOL})
    with Memory.open(folder / "pool", settings=settings.model_copy(update={"packing": wide})) as memory:
        memory.store_many(tqdm(lines(_POOL), total=_POOL, desc=f"storing {_POOL}", unit="memory"), owner="bench")
        report["pool"] = _retrievals(memory, encoder, questions)
    return report


def _retrievals(memory: Memory, encoder: EmbeddingProvider, count: int) -> dict[str, Any]:
    asked = questions(count + _WARM_UP)
    for text in asked[:_WARM_UP]:
        memory.retrieve(text, owner="bench")
        encoder.embed([text])
    whole: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    stages: dict[str, list[float]] = {}
    tokens, candidates = [], []
    gc.collect()
    spent = 0.0
    for start in tqdm(range(_WARM_UP, len(asked), _BLOCK), desc="asking", unit="block"):
        block = asked[start : start + _BLOCK]
        bare += [_timed(lambda text=text: encoder.embed([text]))[:2] for text in block]  # type: ignore[misc]
        begun = time.process_time()
        for text in block:
            cpu, wall, answer = _timed(lambda text=text: memory.retrieve(text, owner="bench"))  # type: ignore[misc]
            whole.append((cpu, wall))
            tokens.append(answer.bundle.tokens_used)
            candidates.append(answer.metadata.candidates_after_filter)
            for name, value in answer.metadata.timings_ms.items():
                stages.setdefault(name, []).append(value)
        time.sleep(_RECORDED_S)
        spent += time.process_time() - begun
    summary = {"retrieval": _percentiles(whole), "embedding": _percentiles(bare)}
    medians = {name: round(float(np.median(values)), 4) for name, values in stages.items()}
    tail = sum(medians[name] for name in _TAIL)
    return {
        **summary,
        "cpu_ratio_with_record": round(spent / sum(cpu for cpu, _ in bare), 3),
        "cpu_ratio": round(summary["retrieval"]["cpu_ms"]["p50"] / summary["embedding"]["cpu_ms"]["p50"], 3),
        "wall_ratio": round(summary["retrieval"]["wall_ms"]["p50"] / summary["embedding"]["wall_ms"]["p50"], 3),
        "merge_to_pack_ratio": round(tail / summary["embedding"]["wall_ms"]["p50"], 3),
        "stages_ms": medians,
        "candidates_mean": round(float(np.mean(candidates)), 1),
        "tokens_mean": round(float(np.mean(tokens)), 1),
        "questions": count,
    }


def _writes(memory: Memory, encoder: EmbeddingProvider, workers: int) -> dict[str, Any]:
    single = list(lines(_SINGLE_STORES, seed=3))
    memory.store(**single[0], owner="single")
    memory.retrieve("warm", owner="single")  # from now on the owner is in memory, and writes must show there
    walls = [_timed(lambda item=item: memory.store(**item, owner="single"))[1] for item in single[1:]]  # type: ignore[misc]
    bulk = list(lines(_BULK, seed=5))
    texts = [item["content"] for item in bulk]
    with ThreadPoolExecutor(workers) as pool:
        bare = _timed(lambda: list(pool.map(lambda text: encoder.embed([text]), texts)))[1]
    stored = _timed(lambda: memory.store_many(bulk, owner="bulk"))[1]
    return {
        "store_ms": {name: round(float(np.percentile(walls, q)) * 1e3, 2) for name, q in _QUANTILES.items()},
        "store_many_per_s": round(_BULK / stored, 1),
        "bare_encoder_per_s": round(_BULK / bare, 1),
        "encoder_threads": workers,
        "rate_ratio": round(bare / stored, 3),
    }


_STEPS = [step.name for step in FLOW]
_TAIL = _STEPS[_STEPS.index("merged") :]
_QUANTILES = {"p50": 50, "p95": 95, "p99": 99}


def _timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def _percentiles(pairs: Sequence[tuple[float, float]]) -> dict[str, dict[str, float]]:
    columns = np.array(pairs) * 1e3
    return {
        kind: {name: round(float(np.percentile(columns[:, column], q)), 3) for name, q in _QUANTILES.items()}
        for column, kind in enumerate(("cpu_ms", "wall_ms"))
    }


def print_latency(report: dict[str, Any]) -> None:
    """Print the report as tables."""
    print(f"{'memories':>9} {'':10} {'CPU p50':>8} {'p95':>8} {'p99':>8} {'wall p50':>9} {'p95':>8} {'p99':>8}  ms")
    runs = [*report["sizes"].items(), (f"{_POOL} wide", report["pool"])]
    for label, found in runs:
        for name in ("embedding", "retrieval"):
            cpu, wall = found[name]["cpu_ms"], found[name]["wall_ms"]
            figures = "".join(f"{cpu[key]:9.2f}" for key in _QUANTILES) + "".join(
                f"{wall[key]:9.2f}" for key in _QUANTILES
            )
            print(f"{label:>9} {name:10}{figures}")
        print(
            f"{'':9} ratio of medians: CPU {found['cpu_ratio']:.2f}, wall {found['wall_ratio']:.2f}; "
            f"of means, records included: CPU {found['cpu_ratio_with_record']:.2f}"
        )
    print("\nMedians of the steps in ms, and in embeddings of the question (wall)")
    print(f"{'':14}" + "".join(f"{label:>20}" for label, _ in runs))
    for name in report["pool"]["stages_ms"]:
        print(f"{name:14}" + "".join(_share(found["stages_ms"][name], found) for _, found in runs))
    print(f"{'merge to pack':14}" + "".join(f"{found['merge_to_pack_ratio']:20.3f}" for _, found in runs))
    print(f"{'candidates':14}" + "".join(f"{found['candidates_mean']:20.0f}" for _, found in runs) + "\n")
    writes = report["writes"]
    print(
        f"store, durable and visible: p50 {writes['store_ms']['p50']} ms, p95 {writes['store_ms']['p95']} ms; "
        f"store_many {writes['store_many_per_s']}/s against {writes['bare_encoder_per_s']}/s of the bare encoder "
        f"with {writes['encoder_threads']} threads: ratio {writes['rate_ratio']:.2f}"
    )


def _share(milliseconds: float, found: dict[str, Any]) -> str:
    return f"{milliseconds:12.3f} {milliseconds / found['embedding']['wall_ms']['p50']:7.3f}"
