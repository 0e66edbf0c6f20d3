"""What `install` leaves behind for an app: its agents, its configuration, its graphs.

Everything is looked up late: a host configures its app after importing it.
"""

from __future__ import annotations

import difflib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from celery import Celery
from celery.app import app_or_default

from celegraph.agent.policy import ApprovalPolicy, approval_policy, check_channels
from celegraph.agent.spec import Agent
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
        self._overrides: dict[str, object] = {}
        self._config: Config | None = None
        self._graphs: dict[str, Graph] = {}
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The host's settings, read once.  `ConfigError` names the key that is wrong."""
        # Without the lock once it is read: a child forked while another thread has the lock never gets it.
        config = self._config
        if config is not None and not self._moved(config):
            return config
        with self._lock:
            if self._options is None:
                self._options = framework.host_options(self.app.conf.get("celegraph")) | self._overrides
            config = framework.host_config(self._options)
            for agent in (None, *self.agents.values()):
                check_channels(_policy_of(agent, config), config)
            self._config = config
            return config

    def _moved(self, config: Config) -> bool:
        # A framework's test runner moves it to another database after everything was imported; runs that
        # stayed with the first one would end up in somebody's real data.
        url = framework.default_database(self._options or {})
        return url is not None and url != config.database_url

    def override(self, **settings: object) -> None:
        """Settings for this process alone, over the host's (the command line's --database-url)."""
        with self._lock:
            self._overrides |= settings
            self._options = self._config = None

    def agent(self, name: str) -> Agent:
        """The agent of this name; `UnknownAgent` suggests a close one."""
        if name not in self.agents:
            close = difflib.get_close_matches(str(name), self.agents, n=1)
            raise UnknownAgent(str(name), list(self.agents), close[0] if close else None)
        return self.agents[name]

    def policy_of(self, agent: Agent) -> ApprovalPolicy:
        """The approval policy of an agent's questions that bring none of their own."""
        return _policy_of(agent, self.config)

    def policy_for(self, name: str | None) -> ApprovalPolicy:
        """The same by the agent's name; one that is not installed any more has the app's."""
        return _policy_of(self.agents.get(name or ""), self.config)

    def graph(self, name: str) -> Graph:
        """The agent's compiled graph, loaded once per process."""
        # Here and not above: web processes read agents' names and must never import LangGraph.
        from celegraph.agent.graphs import load_graph

        if name in self._graphs:
            return self._graphs[name]
        with self._lock:
            if name not in self._graphs:
                self._graphs[name] = load_graph(name, self.agent(name))
            return self._graphs[name]

    def worker_id(self) -> str:
        """Which process this is, for people; identity is the lease's epoch, never this name."""
        return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident() & 0xFFFF:x}"


def _policy_of(agent: Agent | None, config: Config) -> ApprovalPolicy:
    default = approval_policy(config.approval)
    own = agent.approval if agent is not None else None
    if own is None or own.notify is not None:
        return own or default
    return own.model_copy(update={"notify": default.notify})


_installations: WeakKeyDictionary[Celery, Installation] = WeakKeyDictionary()
_latest: list[Installation] = []
_chosen: list[Installation] = []
_here: ContextVar[Installation | None] = ContextVar("celegraph_installation", default=None)


def remember(installation: Installation) -> None:
    """Make `installation` the one its app's helpers find."""
    _installations[installation.app] = installation
    _latest[:] = [installation]


def ledger_only() -> Installation:
    """An installation without a host's app, for processes that know nothing but the database.

    It reads and writes the ledger and rings nobody: what it makes due, the sweep rings.  Helpers find
    it inside `using`.
    """
    return Installation(Celery("celegraph", set_as_current=False), {})


def find(app: Celery) -> Installation | None:
    """The app's installation, if there is one."""
    return _installations.get(app)


@contextmanager
def using(chosen: Installation) -> Iterator[None]:
    """For the length of the block the helpers of this whole process find `chosen`.

    Node threads too, which is why this is no context variable.
    """
    _chosen.append(chosen)
    try:
        yield
    finally:
        _chosen.remove(chosen)


@contextmanager
def within(chosen: Installation) -> Iterator[None]:
    """For the length of the block the helpers called here find `chosen`: a request of one app's pages, in a
    process that may hold several apps."""
    token = _here.set(chosen)
    try:
        yield
    finally:
        _here.reset(token)


def installation() -> Installation:
    """The current app's installation, else the newest one.

    Celery's current app is per thread, and a web server's threads did not create the app.
    """
    if (here := _here.get()) is not None:
        return here
    if _chosen:
        return _chosen[-1]
    found = _installations.get(app_or_default())
    if found is not None:
        return found
    if _latest:
        return _latest[0]
    raise NotInstalled(
        "no Celery app has celegraph; next to `app = Celery(...)` add"
        ' celegraph.install(app, agents={"name": "package.module:graph"})'
    )
