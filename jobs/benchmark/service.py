"""Suite ``service``: the same retrieval in-process, on Ray, in a compiled graph and over HTTP, in one run.

Two stores with the same memories: one is read in-process, the other by the service. Every block of ten
questions is put to each way in turn: what else the machine does meets all alike, and each way works as it
does in use, not with the caches of another process. Then clients ask the service side by side.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tqdm import tqdm

from jobs.benchmark.corpus import lines, questions
from prme_ray import Memory, Settings
from prme_ray.launch import local_service

__all__ = ["print_service", "run_service"]

_BLOCK = 10
"""Questions put to one way before the next has its turn; the first block only warms up."""
_OWNER = "bench"
_COMPILE_S = 30.0
_LIMIT = 20
"""Results of the short answers: what an agent that only wants the context asks for."""
_BASE = {"ray": "inline", "compiled": "inline", "http": "ray", "http, 20": "ray, 20"}
"""What a way is compared with."""
_QUANTILES = {"p50": 50, "p95": 95, "p99": 99}


def run_service(
    size: int, *, questions: int, concurrency: Sequence[int], folder: Path, settings: Settings
) -> dict[str, Any]:
    """Return the report.

    Args:
        size: Memories of the owner.
        questions: Retrievals measured by each way, and at each concurrency.
        concurrency: Numbers of clients that ask at once.
        folder: Empty folder for the stores.
        settings: Settings of the stores; without a cache of vectors, or repeated questions cost no embedding.
    """
    for name in ("inline", "served"):
        with Memory.open(folder / name, settings=settings) as memory:
            memory.store_many(tqdm(lines(size), total=size, desc=f"storing {size}", unit="memory"), owner=_OWNER)
    with _free_port() as port:
        pass
    given = settings.model_dump(mode="json", exclude_defaults=True)
    arguments = {"path": str(folder / "served"), "settings": given}
    with (
        local_service(arguments, host="127.0.0.1", port=port) as address,
        Memory.open(folder / "inline", settings=settings) as inline,
        Memory.open(folder / "served", settings=settings, executor="ray", keep=True) as ray,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client,
    ):
        report: dict[str, Any] = {"memories": size, "questions": questions}
        report["ways"] = _in_turn(
            {
                "inline": partial(_timings, inline),
                "ray": partial(_timings, ray),
                "http": partial(_post, client),
                "ray, 20": partial(_timings, ray, limit=_LIMIT),
                "http, 20": partial(_post, client, limit=_LIMIT),
            },
            questions,
        )
        report["concurrency"] = {str(count): _side_by_side(address, count, questions) for count in concurrency}
        # By itself, as the actors of a compiled graph poll while it is up and would slow the others down.
        with Memory.open(folder / "served", settings=settings, executor="compiled", keep=True) as compiled:
            _await_graph(compiled)
            ways = {"inline": partial(_timings, inline), "compiled": partial(_timings, compiled)}
            report["ways"]["compiled"] = _in_turn(ways, questions)["compiled"]
    return report


def _await_graph(memory: Memory) -> None:
    """Ask until the compiled graph, which is built when it is first wanted, has answered."""
    deadline = time.monotonic() + _COMPILE_S
    while not (memory.health().coordinator or {})["graph_answers"] and time.monotonic() < deadline:
        memory.retrieve("Is the graph there?", owner=_OWNER)


def _in_turn(ways: Mapping[str, Callable[..., Any]], count: int) -> dict[str, Any]:
    asked = questions(count + _BLOCK)
    walls: dict[str, list[float]] = {name: [] for name in ways}
    steps: dict[str, dict[str, list[float]]] = {name: {} for name in ways}
    sizes: dict[str, list[int]] = {name: [] for name in ways}
    blocks = [asked[start : start + _BLOCK] for start in range(0, len(asked), _BLOCK)]
    for number, block in enumerate(tqdm(blocks, desc="asking every way", unit="block")):
        for name, ask in ways.items():
            for text in block:
                started = time.perf_counter()
                said = ask(text)
                elapsed = (time.perf_counter() - started) * 1e3
                if not number:
                    continue
                walls[name].append(elapsed)
                if isinstance(said, int):
                    sizes[name].append(said)
                    continue
                for step, value in said.items():
                    steps[name].setdefault(step, []).append(value)
    medians = {name: float(np.median(found)) for name, found in walls.items()}
    return {
        name: {
            "wall_ms": _percentiles(found),
            **(
                {"over": _BASE[name], "over_ms": round(medians[name] - medians[_BASE[name]], 3)}
                if name in _BASE
                else {}
            ),
            "steps_ms": {step: round(float(np.median(values)), 3) for step, values in steps[name].items()},
            **({"bytes_mean": int(np.mean(sizes[name]))} if sizes[name] else {}),
        }
        for name, found in walls.items()
    }


def _timings(memory: Memory, text: str, **options: Any) -> dict[str, float]:
    return memory.retrieve(text, owner=_OWNER, **options).metadata.timings_ms


def _post(client: http.client.HTTPConnection, text: str, **options: Any) -> int:
    body = json.dumps({"query": text, "owner": _OWNER, **options})
    client.request("POST", "/v1/retrieve", body, {"Content-Type": "application/json"})
    answer = client.getresponse()
    content = answer.read()
    if answer.status != HTTPStatus.OK:
        raise RuntimeError(f"the service answered {answer.status}: {content[:200]!r}")
    return len(content)


def _side_by_side(address: str, clients: int, count: int) -> dict[str, Any]:
    """Return throughput and percentiles of ``clients`` that each ask as fast as they are answered."""
    asked = questions(count)
    taken: Iterator[str] = iter(asked)
    lock, walls, refused = threading.Lock(), list[float](), [0]

    def work() -> None:
        with httpx.Client(base_url=address, timeout=60) as client:
            while True:
                with lock:
                    text = next(taken, None)
                if text is None:
                    return
                started = time.perf_counter()
                answer = client.post("/v1/retrieve", json={"query": text, "owner": _OWNER})
                with lock:
                    walls.append((time.perf_counter() - started) * 1e3)
                    refused[0] += answer.status_code != httpx.codes.OK

    threads = [threading.Thread(target=work) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    return {"per_s": round(count / seconds, 1), "wall_ms": _percentiles(walls), "refused": refused[0]}


def _percentiles(walls: Sequence[float]) -> dict[str, float]:
    return {name: round(float(np.percentile(walls, q)), 2) for name, q in _QUANTILES.items()}


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield int(probe.getsockname()[1])


def print_service(report: dict[str, Any]) -> None:
    """Print the report as tables."""
    print(f"\nOne retrieval among {report['memories']} memories, wall ms, ten questions each way in turn")
    print(f"{'':10}{'p50':>9}{'p95':>9}{'p99':>9}{'more than':>17}{'bytes':>11}")
    for name, found in report["ways"].items():
        wall = found["wall_ms"]
        more = f"{found['over']} {found['over_ms']:+.2f}" if "over" in found else ""
        size = f"{found['bytes_mean']:,}" if "bytes_mean" in found else ""
        print(f"{name:10}" + "".join(f"{wall[key]:9.2f}" for key in _QUANTILES) + f"{more:>17}{size:>11}")
    print("\nWhere the time goes: median ms of each step in the coordinator (waiting included), and away on its actor")
    names = [name for name in ("inline", "ray", "compiled") if name in report["ways"]]
    print(f"{'':16}" + "".join(f"{name:>20}" for name in names))
    for step in report["ways"]["inline"]["steps_ms"]:
        print(f"{step:16}" + "".join(_step(report["ways"][name]["steps_ms"], step) for name in names))
    print(f"\n{'clients':>8}{'answers/s':>11}{'p50':>9}{'p95':>9}{'p99':>9}{'refused':>9}")
    for clients, found in report["concurrency"].items():
        wall = found["wall_ms"]
        print(
            f"{clients:>8}{found['per_s']:11.1f}"
            + "".join(f"{wall[key]:9.1f}" for key in _QUANTILES)
            + f"{found['refused']:9}"
        )


def _step(steps: dict[str, float], name: str) -> str:
    away = steps.get(f"{name}.away")
    here = f"{steps[name]:.2f}" if name in steps else "-"
    return f"{here if away is None else f'{here} ({away:.2f})':>20}"
