"""What `install` leaves behind for an app: its agents, its configuration, its graphs.

Everything is looked up late: a host configures its app after importing it.
"""

from __future__ import annotations

import difflib
import os
import socket
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from celery import Celery
from celery.app import app_or_default

from celegraph.agent.spec import Agent, ApprovalPolicy, approval_policy
from celegraph.config import Config
from celegraph.errors import NotInstalled, UnknownAgent
from celegraph.tasks import framework

if TYPE_CHECKING:
    from celegraph.agent.graphs import Graph


class Installation:
    """One app's celegraph."""

    def __init__(self, app: Celery, agents: Mapping[str, object]):
        self.app = app
        self.agents = {name: Agent.of(name, value) for name, value in agents.items()}
        self._options: dict[str, object] | None = None
        self._config: Config | None = None
        self._graphs: dict[str, Graph] = {}
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The host's settings, read once.  `ConfigError` names the key that is wrong."""
        with self._lock:
            if self._options is None:
                self._options = framework.host_options(self.app.conf.get("celegraph"))
            # Not once: a framework's test runner moves it to another database after everything was
            # imported, and runs that stayed would end up in somebody's real data.
            url = framework.default_database(self._options)
            if self._config is None or url not in (None, self._config.database_url):
                self._config = framework.host_config(self._options)
                approval_policy(self._config.approval)
            return self._config

    def agent(self, name: str) -> Agent:
        """The agent of this name; `UnknownAgent` suggests a close one."""
        if name not in self.agents:
            close = difflib.get_close_matches(str(name), self.agents, n=1)
            raise UnknownAgent(str(name), list(self.agents), close[0] if close else None)
        return self.agents[name]

    def policy(self, name: str) -> ApprovalPolicy:
        """The approval policy of an agent's questions that bring none of their own."""
        return self.agent(name).approval or approval_policy(self.config.approval)

    def graph(self, name: str) -> Graph:
        """The agent's compiled graph, loaded once per process."""
        # Here and not above: web processes read agents' names and must never import LangGraph.
        from celegraph.agent.graphs import load_graph

        with self._lock:
            if name not in self._graphs:
                self._graphs[name] = load_graph(name, self.agent(name))
            return self._graphs[name]

    def worker_id(self) -> str:
        """Which process this is, for people; identity is the lease's epoch, never this name."""
        return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident() & 0xFFFF:x}"


_installations: WeakKeyDictionary[Celery, Installation] = WeakKeyDictionary()
_latest: list[Installation] = []


def remember(installation: Installation) -> None:
    """Make `installation` the one its app's helpers find."""
    _installations[installation.app] = installation
    _latest[:] = [installation]


def find(app: Celery) -> Installation | None:
    """The app's installation, if there is one."""
    return _installations.get(app)


def installation() -> Installation:
    """The current app's installation, else the newest one.

    Celery's current app is per thread, and a web server's threads did not create the app.
    """
    found = _installations.get(app_or_default())
    if found is not None:
        return found
    if _latest:
        return _latest[0]
    raise NotInstalled(
        "no Celery app has celegraph; next to `app = Celery(...)` add"
        ' celegraph.install(app, agents={"name": "package.module:graph"})'
    )
