"""`ray up` with the local provider, for real: a head and a worker on this machine, reached by ssh.

An ssh server of the test's own listens on loopback and gives every session a home in the test's folder, so
nothing of the machine's is used. What ends is found by that home in its environment: `ray down` would
run `ray stop`, which ends every Ray process of the machine.
"""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
import yaml

from tests.architecture import ROOT

pytestmark = pytest.mark.slow

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
MISSING = [name for name, found in (("openssh-server", SSHD), ("rsync", shutil.which("rsync"))) if found is None]

HEAD, WORKER = "127.0.0.3", "127.0.0.2"
"""Two machines that are this one; ssh uses port 22 of each, as the launcher knows no other."""

ASK = """
import json, sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False)
until = time.monotonic() + 90
while ray.cluster_resources().get("shards") != 2 and time.monotonic() < until:
    time.sleep(1)

@ray.remote(num_cpus=0, resources={"shards": 1})
def on_worker():
    import os
    import prme_ray
    return prme_ray.__version__, ray.get_runtime_context().get_node_id(), os.environ["RAY_SERVE_ENABLE_HA_PROXY"]

version, node, haproxy = ray.get(on_worker.remote(), timeout=120)
nodes = [one for one in ray.nodes() if one["Alive"]]
shards = {one["NodeID"]: one["Resources"].get("shards", 0) for one in nodes}
print(json.dumps({"version": version, "haproxy": haproxy, "nodes": len(nodes), "shards_there": shards[node]}))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ours(home):
    """Processes whose environment has this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(home):
                found.append(process)
        except psutil.Error:
            continue
    return found


def end(home):
    until = time.monotonic() + 30
    while (left := ours(home)) and time.monotonic() < until:
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=5)
    assert left == []


@pytest.fixture
def machine():
    """A home folder and an ssh server that leads into it. Its path is short, for Ray's sockets have 107 bytes."""
    if MISSING:
        pytest.skip(f"`ray up` needs an ssh server and rsync: apt-get install {' '.join(MISSING)}")
    folder = Path(tempfile.mkdtemp(prefix="prme-"))
    home = folder / "home"
    home.mkdir()
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "sshd_config").write_text(
        f"Port 22\nListenAddress {HEAD}\nListenAddress {WORKER}\n"
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/key.pub\n"
        f"StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nPidFile none\nSetEnv HOME={home}\n"
    )
    # The head reaches the worker with its copy of the key, and ssh looks for `~` in the user database, not in HOME.
    copy = Path(pwd.getpwuid(os.getuid()).pw_dir) / "ray_bootstrap_key.pem"
    if copy.exists():
        pytest.skip(f"{copy} belongs to a cluster that was started here")
    copy.symlink_to(folder / "key")
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd insists on it
    server = subprocess.Popen([SSHD, "-D", "-f", folder / "sshd_config", "-E", folder / "sshd.log"])
    yield folder
    end(home)
    server.terminate()
    server.wait()
    copy.unlink()
    shutil.rmtree(folder)


def on_this_machine(given, folder, port):
    """The cluster file with this machine's addresses, an installed environment and ports nobody else has."""
    given["cluster_name"] = f"prme-ray-test-{port}"
    given["provider"] = {"type": "local", "head_ip": HEAD, "worker_ips": [WORKER]}
    given["auth"] = {"ssh_user": psutil.Process().username(), "ssh_private_key": str(folder / "key")}
    given["file_mounts"] = {}
    secret = f"mkdir -p ~/prme-ray && echo RAY_AUTH_TOKEN={'a' * 32} > ~/prme-ray/prme-ray.env"
    given["setup_commands"] = [f"ln -sfn {sys.prefix} ~/env", secret]
    few = f" --num-cpus=1 --object-store-memory=100000000 --dashboard-agent-listen-port={free_port()}"
    alone = f" --include-dashboard=false --temp-dir={folder}/ray --ray-client-server-port={free_port()}"
    for kind, ip, more in (("head", HEAD, few + alone), ("worker", WORKER, few)):
        commands = given[f"{kind}_start_ray_commands"]
        assert len(commands) == 1 and "6379" in commands[0]
        given[f"{kind}_start_ray_commands"] = [
            commands[0].replace("6379", str(port)).rstrip() + more + f" --node-ip-address={ip}"
        ]
    return given, f"{HEAD}:{port}"


def test_ray_up_starts_head_and_worker_that_run_our_code(machine):
    port = free_port()
    given = yaml.safe_load((ROOT / "docs" / "ops" / "cluster-local.yaml").read_text("utf-8"))
    given, address = on_this_machine(given, machine, port)
    path = machine / "cluster.yaml"
    path.write_text(yaml.safe_dump(given))
    environment = {
        **os.environ, "HOME": str(machine / "home"), "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32,
    }  # fmt: skip
    ray = str(Path(sys.executable).parent / "ray")
    up = subprocess.run(
        [ray, "up", "-y", "--no-config-cache", path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert up.returncode == 0, up.stdout[-9000:] + up.stderr[-3000:]
    asked = subprocess.run(
        [sys.executable, "-c", ASK, address],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    said = "".join(log.read_text("utf-8")[-5000:] for log in machine.glob("ray/session_latest/logs/monitor*"))
    assert asked.returncode == 0, asked.stdout[-3000:] + asked.stderr[-3000:] + said
    import prme_ray

    assert json.loads(asked.stdout.splitlines()[-1]) == {
        "version": prme_ray.__version__, "haproxy": "1", "nodes": 2, "shards_there": 2.0
    }  # fmt: skip
