"""A store on several nodes: one of them is lost, with everything that ran on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_lost_node_loses_no_acknowledged_write(tmp_path: Path) -> None:
    # In a process of its own: a process can be in one cluster only.
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.nodes_child", str(tmp_path / "store")],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    print(report)
    assert report["wrong"] == []
    assert report["missing"] == []
    assert report["healthy"]
    assert len(report["lost_nodes"]) == 3
