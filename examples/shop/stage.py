"""Everything a shop runs on: PostgreSQL, Valkey, a payment provider, a mail server, workers, beat, its web.

All of it stands on 127.0.0.1 with passwords of its own, ends with this process however that ends, and
leaves nothing behind.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Self

from celegraph.dev.errors import ServerFailed
from celegraph.dev.home import Home
from celegraph.dev.kept import KeptProcess
from celegraph.dev.server import free_port
from celegraph.dev.servers import LocalServers
from celegraph.dev.stage import LocalStage
from examples.shop.goods import PEOPLE

ROOT = Path(__file__).resolve().parents[2]
_LOOK_EVERY = 0.5


@dataclass(frozen=True)
class Shop:
    """What is particular to one of the shops; {port} stands for the web server's."""

    name: str
    app: str  # for `celery -A`
    prepare: Sequence[Sequence[str]]  # commands that make and fill its tables
    web: Sequence[str]
    port: int
    also: Mapping[str, str] = field(default_factory=dict)  # name -> path of other pages worth knowing


class Stage(LocalStage):
    """A shop's servers and processes for the length of the block.

    `port` is the web server's; 0 takes any, None the shop's own if it is free.
    """

    def __init__(self, shop: Shop, *, port: int | None = None):
        super().__init__(shop.app, ROOT, home=Home.passing(), servers=LocalServers(temporary=True))
        self.shop = shop
        self.password = secrets.token_urlsafe(6)
        self._secret = secrets.token_urlsafe(32)
        self._port = _free(shop.port) if port is None else port or free_port()
        self._payments_port = 0

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    @property
    def url(self) -> str:
        """Where the shop is."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def payments_log(self) -> Path:
        """The payment provider's log: a line per refund that was really made."""
        return self.home.path / "provider" / "refunds.jsonl"

    def _open(self) -> None:
        self.open_servers()
        self._payments_port = free_port()
        words = ["-m", "examples.payments.provider", "--port", str(self._payments_port)]
        self.start("provider", [*words, "--log", str(self.payments_log)])
        _await_port(self.processes["provider"], self._payments_port)
        for command in self.shop.prepare:
            self._run(command)
        self._start_workers()
        self.start("web", [word.replace("{port}", str(self._port)) for word in self.shop.web])
        for name in ("worker", "control"):
            self.processes[name].await_log(" ready.")
        _await_port(self.processes["web"], self._port)

    def _start_workers(self) -> None:
        for name, queues, slots in (("worker", "celery,celegraph", 2), ("control", "celegraph.control", 1)):
            words = f"worker -n {name}@%h -Q {queues} --concurrency {slots} --loglevel INFO".split()
            self.celery(name, *words)
        self.start_beat()

    def _run(self, arguments: Sequence[str]) -> None:
        done = subprocess.run(  # noqa: S603 - the shop's own commands
            [sys.executable, *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(" ".join(arguments), "it failed", done.stdout + done.stderr)

    def variables(self) -> dict[str, str]:
        """What the shop reads from its environment."""
        return {
            "CELERY_BROKER_URL": self.servers.broker_url,
            "SHOP_DATABASE_URL": self.servers.database_url,
            "SHOP_URL": self.url,
            "SHOP_SECRET": self._secret,
            "SHOP_PASSWORD": self.password,
            "SHOP_SMTP_URL": self.smtp.url,
            "SHOP_MAIL_LOG": str(self.smtp.log),
            "PAYMENTS_URL": f"http://127.0.0.1:{self._payments_port}",
            "PAYMENTS_KEY": "local",
        }


def play(shop: Shop) -> NoReturn:
    """Open the shop, say how to get in, and keep it open until Ctrl-C.

    SHOP_PORT in the environment is the web server's port (0: any) instead of the shop's own.
    """
    # SIGINT too: a shell that starts us in the background has it ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    sys.stdout.write(f"opening the {shop.name}: PostgreSQL, Valkey, mail, payments, workers, beat, web ...\n")
    sys.stdout.flush()
    try:
        port = os.environ.get("SHOP_PORT")
        with Stage(shop, port=None if port is None else int(port)) as stage:
            sys.stdout.write(_how_to_get_in(stage))
            sys.stdout.flush()
            _watch(stage)
    except KeyboardInterrupt:
        sys.stdout.write("closed; nothing is left behind\n")
        sys.exit(0)


def _how_to_get_in(stage: Stage) -> str:
    logins = "".join(f"\n    {p.name:<10} {stage.password}   {_does(p.rights)}" for p in PEOPLE)
    also = "".join(f"\n  {name:<8} {stage.url}{path}" for name, path in stage.shop.also.items())
    return (
        f"\n  shop     {stage.url}/\n  inbox    {stage.url}/agents/{also}"
        f"\n\n  sign in as (name, password){logins}"
        f"\n\n  refunds  {stage.payments_log}\n  mails    {stage.smtp.log}"
        f"\n  logs     {stage.home.path}/*/log"
        "\n\nAsk for a refund as customer, decide as manager in another browser window."
        "\nOrder U-1 is urgent: after 5 s the head is asked too, after 20 s it is too late."
        "\n\nCtrl-C closes the shop.\n"
    )


def _does(rights: Sequence[str]) -> str:
    if "operate" in rights:
        return "decides, cancels, retries"
    return "decides" if rights else "buys, and wants refunds"


def _watch(stage: Stage) -> NoReturn:
    ended = set[str]()
    while True:
        for name, process in stage.processes.items():
            if process.pid is None and name not in ended:
                ended.add(name)
                sys.stdout.write(f"{name} has ended: {process.tail(3)}\n")
                sys.stdout.flush()
        time.sleep(_LOOK_EVERY)


def _free(wanted: int) -> int:
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return free_port()
    return wanted


def _await_port(process: KeptProcess, port: int) -> None:
    give_up = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.pid is None or time.monotonic() > give_up:
                raise ServerFailed(process.name, f"it does not listen on {port}", process.tail()) from None
            time.sleep(0.02)
