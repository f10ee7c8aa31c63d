"""The command ``prme-ray``: runs the HTTP service, and keeps its keys.

``prme-ray serve --path ./memory``

``prme-ray keys create --file keys.json --tenant acme --allow memory:read memory:write``
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from prme_ray.defaults import utc_now
from prme_ray.keys import NewKey, Permission, create_key, read_keys, revoke_key, rotate_key
from prme_ray.model.errors import PrmeRayError
from prme_ray.settings_io import load_settings

__all__ = ["main"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, or 1 after a message about what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except PrmeRayError as error:
        print(f"prme-ray: {error}", file=sys.stderr)
        return 1
    return 0


def _create(options: argparse.Namespace) -> None:
    now = utc_now()
    _show(
        create_key(
            options.file,
            tenant=options.tenant,
            owner=options.owner,
            agent=options.agent,
            permissions=options.allow,
            now=now,
            expires_at=None if options.expires_in is None else now + options.expires_in,
            per_second=options.per_second,
            burst=options.burst,
            label=options.label,
        )
    )


def _list(options: argparse.Namespace) -> None:
    now = utc_now()
    for record in read_keys(options.file):
        shown = record.model_dump(mode="json", exclude={"digest"}, exclude_none=True)
        print(json.dumps({**shown, "valid": record.valid_at(now)}, ensure_ascii=False))


def _rotate(options: argparse.Namespace) -> None:
    _show(rotate_key(options.file, options.id, now=utc_now(), grace=options.grace))


def _revoke(options: argparse.Namespace) -> None:
    revoke_key(options.file, options.id)


def _serve(options: argparse.Namespace) -> None:
    # Ray takes a second to import.
    from prme_ray.launch import serve_until_stopped

    settings = load_settings(file=options.settings)
    serve_until_stopped(
        {
            "path": str(options.path.absolute()),
            "executor": options.executor,
            "settings": settings.model_dump(mode="json", exclude_defaults=True),
            "keys_file": None if options.keys is None else str(options.keys.absolute()),
            "replicas": options.replicas,
        },
        host=options.host,
        port=options.port,
    )


def _show(made: NewKey) -> None:
    # The only time it is seen: the file keeps its hash.
    print(made.key)
    print(f"id {made.record.id}; keep the key, it cannot be shown again", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="prme-ray", description="Long-term memory of LLM agents.")
    commands = parser.add_subparsers(required=True, metavar="command")
    serve = commands.add_parser("serve", help="run the HTTP service on this machine until interrupted")
    serve.add_argument("--path", type=Path, required=True, help="folder of the store, made when missing")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on; others than loopback need --keys")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on")
    serve.add_argument("--keys", type=Path, help="file of `prme-ray keys`; without it everybody may come in")
    serve.add_argument("--settings", type=Path, help="TOML or JSON file of settings; PRME_ variables win over it")
    serve.add_argument("--executor", choices=["ray", "compiled", "inline"], default="ray", help="where the flow runs")
    serve.add_argument("--replicas", type=int, default=1, help="processes that answer")
    serve.set_defaults(run=_serve)
    keys = commands.add_parser("keys", help="keys of the HTTP service")
    actions = keys.add_subparsers(required=True, metavar="action")
    create = _action(actions, "create", _create, "make a key and print it once")
    create.add_argument("--tenant", required=True, help="the only tenant it may act in")
    bound = create.add_mutually_exclusive_group()
    bound.add_argument("--owner", help="the only owner it may act for")
    bound.add_argument("--agent", help="the agent it belongs to: acts for the owner of that name, in scope agent")
    create.add_argument(
        "--allow", nargs="+", required=True, choices=[*Permission], metavar="PERMISSION", help=", ".join(Permission)
    )
    create.add_argument("--expires-in", type=_duration, help="such as 90d; never when left out")
    create.add_argument("--per-second", type=float, help="requests a second of each replica; no limit when left out")
    create.add_argument("--burst", type=int, default=10, help="requests at once, where --per-second is given")
    create.add_argument("--label", default="", help="a note")
    _action(actions, "list", _list, "print what is known of every key, one JSON object a line")
    rotate = _action(actions, "rotate", _rotate, "make a key that allows the same; the old one soon expires")
    rotate.add_argument("id", help="id of the old key")
    rotate.add_argument("--grace", type=_duration, default=timedelta(days=1), help="how long it stays valid; 1d")
    revoke = _action(actions, "revoke", _revoke, "take a key out at once")
    revoke.add_argument("id", help="id of the key")
    return parser


def _action(actions: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.add_argument("--file", type=Path, required=True, help="file of keys, made when missing")
    parser.set_defaults(run=run)
    return parser


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30m, 12h or 90d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


if __name__ == "__main__":
    sys.exit(main())
