"""Runs a store on a cluster of three nodes, loses the node of the writer, of a channel and of the embedder in turn."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from prme_ray import Memory
from tests.cluster.corpus import make
from tests.cluster.load import under_load


def main(store: Path) -> None:
    make(store)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = {}
    for _ in range(3):
        node = cluster.add_node(num_cpus=8)
        nodes[node.node_id] = node
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    lost = []
    # CPUs make Ray put the actors on the three nodes, as the head has none.
    options = {"cluster": {"groups": 2, "channel_cpus": 0.5, "writer_cpus": 0.5, "timeout_s": 120}}
    with Memory.open(store, executor="ray", settings=options) as memory:
        handles = memory._store.handles
        with under_load(memory) as load:
            for kind in ("writer", "vector", "embedder"):
                actor = handles.embedder(0) if kind == "embedder" else handles.get(kind, lambda: 0)
                where = ray.get(actor.ready.remote())["node"]
                started = time.monotonic()
                cluster.remove_node(nodes.pop(where), allow_graceful=False)
                fresh = cluster.add_node(num_cpus=8)
                nodes[fresh.node_id] = fresh
                load.progress(timeout_s=300)
                lost.append({"node_of": kind, "seconds_to_recover": round(time.monotonic() - started, 1)})
        report = {
            "wrong": load.wrong,
            "missing": load.missing(),
            "refused": len(load.refused),
            "stored": len(load.acknowledged),
            "answered": load.answered,
            "longest_call_s": round(load.longest_s, 1),
            "lost_nodes": lost,
            "healthy": memory.health().healthy,
        }
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
