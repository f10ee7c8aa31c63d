"""Command line of the benchmark: ``relevance``, ``latency`` and ``ingress``."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from jobs.benchmark.latency import print_latency, run_latency
from jobs.benchmark.locomo import read_conversations, read_questions
from jobs.benchmark.relevance import run_relevance
from jobs.benchmark.service import print_service, run_service
from prme_ray import load_settings
from prme_ray.model.errors import InvalidSettings

_ROW = "{:8} {:12} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>7}"


def main(arguments: list[str] | None = None) -> int:
    """Run one suite; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jobs.benchmark", description=__doc__)
    suites = parser.add_subparsers(dest="suite", required=True)
    relevance = suites.add_parser("relevance", help="is the annotated evidence ranked high and packed?")
    relevance.add_argument("--dataset", choices=["locomo"], required=True)
    relevance.add_argument("--data", type=Path, required=True, help="folder with turns.jsonl")
    relevance.add_argument("--questions", type=Path, required=True, help="file of questions")
    relevance.add_argument("--budget", type=int, default=4096, help="token budget of every question")
    relevance.add_argument("--limit-conversations", type=int, help="only the first N conversations")
    relevance.add_argument("--json", type=Path, required=True, help="file for the report")
    latency = suites.add_parser("latency", help="CPU and wall time of retrievals and writes")
    latency.add_argument("--memories", default="600", help="sizes of the owner, such as 600,20000")
    latency.add_argument("--questions", type=int, default=200, help="retrievals measured a size")
    latency.add_argument("--json", type=Path, required=True, help="file for the report")
    latency.add_argument("--service", action="store_true", help="also on Ray, in compiled graphs and over HTTP")
    latency.add_argument("--clients", default="1,8,32", help="clients that ask the service at once")
    ingress = suites.add_parser("ingress", help="Ray Serve's ways in, around an application that does nothing")
    ingress.add_argument("--requests", type=int, default=500, help="requests measured a way and answer")
    ingress.add_argument("--json", type=Path, required=True, help="file for the report")
    for suite in (relevance, latency):
        suite.add_argument("--settings", type=Path, help="TOML or JSON file of settings; PRME_ variables win over it")
    options = parser.parse_args(arguments)
    try:
        report = {"relevance": _relevance, "latency": _latency, "ingress": _ingress}[options.suite](options)
    except (OSError, ValueError, InvalidSettings) as error:
        parser.error(str(error))
    report = {**report, "host": _host()}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(json.dumps({"suite": options.suite, "json": str(options.json)}))
    return 0


def _relevance(options: argparse.Namespace) -> dict[str, Any]:
    settings = load_settings(file=options.settings)
    conversations = read_conversations(options.data, limit=options.limit_conversations)
    questions = read_questions(options.questions, conversations)
    if not questions:
        raise ValueError(f"{options.questions} has no answerable question about these conversations")
    with tempfile.TemporaryDirectory(prefix="prme-ray-benchmark-") as folder:
        report = run_relevance(conversations, questions, budget=options.budget, folder=Path(folder), settings=settings)
    names = ("all_evidence_packed", "recall@5", "recall@10", "recall@50", "precision@5", "mrr", "ndcg@10")
    print(_ROW.format("arm", "questions", "n", "packed", "R@5", "R@10", "R@50", "P@5", "MRR", "nDCG@10", "tokens"))
    for arm, found in report["arms"].items():
        for label, part in [("all", found), *found["by_category"].items()]:
            if part["n"]:
                figures = (f"{part[name]:.3f}" for name in names)
                print(_ROW.format(arm, label, part["n"], *figures, f"{part['tokens_mean']:.0f}"))
    return {"suite": "relevance", "dataset": options.dataset, **report}


def _latency(options: argparse.Namespace) -> dict[str, Any]:
    # Vectors of questions are not kept: every retrieval pays for its embedding.
    settings = load_settings(file=options.settings, overrides={"encoder": {"cache_entries": 0}})
    sizes = [int(size) for size in options.memories.split(",")]
    with tempfile.TemporaryDirectory(prefix="prme-ray-benchmark-") as folder:
        report = run_latency(sizes, questions=options.questions, folder=Path(folder), settings=settings)
        print_latency(report)
        if options.service:
            clients = [int(count) for count in options.clients.split(",")]
            stores = Path(folder) / "service"
            stores.mkdir()
            report["service"] = run_service(
                sizes[0], questions=options.questions, concurrency=clients, folder=stores, settings=settings
            )
            print_service(report["service"])
    return {"suite": "latency", **report}


def _ingress(options: argparse.Namespace) -> dict[str, Any]:
    from jobs.benchmark.ingress import print_ingress, run_ingress  # loads FastAPI

    report = run_ingress(requests=options.requests)
    print_ingress(report)
    return {"suite": "ingress", **report}


def _host() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {"commit": commit or None, "machine": platform.machine(), "python": platform.python_version()}


if __name__ == "__main__":
    sys.exit(main())
