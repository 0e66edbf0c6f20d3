"""Becomes a RabbitMQ node of its own: data, ports, cookie and name in the directory it is given.

The port mapper of Erlang would outlive its node, so each node has one of its own, which dies with it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

from celegraph.dev.server import free_port
from tests.support.process import die_with_parent

_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


def main(home: Path) -> None:
    """The node's facts (`node.json`) are as old as its data."""
    facts = _facts(home)
    env = {
        **os.environ,
        "HOME": str(home),  # of the cookie
        "ERL_EPMD_PORT": str(facts["epmd"]),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RUNNING_UNDER_SYSTEMD": "yes",  # no shell in between that would wait for signals
        "RABBITMQ_NODENAME": f"{facts['name']}@localhost",
        "RABBITMQ_DIST_PORT": str(facts["dist"]),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "no-such-file"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_LOGS": "-",
        # Two schedulers are plenty, and they shall not spin while they have nothing to do.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
    }
    (home / "plugins").write_text("[].\n")
    (home / "rabbitmq.conf").write_text(_settings(facts))
    subprocess.Popen(["epmd", "-port", str(facts["epmd"])], env=env, preexec_fn=die_with_parent)
    os.execve(_SERVER, [_SERVER], env)


def _facts(home: Path) -> dict[str, object]:
    path = home / "node.json"
    if not path.exists():
        facts = {name: free_port() for name in ("port", "dist", "epmd")}
        known = facts | {"name": f"celegraph-{secrets.token_hex(4)}", "password": secrets.token_urlsafe(16)}
        path.write_text(json.dumps(known))
    return dict(json.loads(path.read_text()))


def _settings(facts: dict[str, object]) -> str:
    settings = {
        "listeners.tcp.1": f"127.0.0.1:{facts['port']}",
        "default_user": "celegraph",
        "default_pass": facts["password"],
        "disk_free_limit.absolute": "1MB",
        "log.console": "true",
        "log.console.level": "warning",
    }
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
