"""What the host's web framework knows without being told: options in its settings, its own database.

A door (Django) fills this in; without one, options come from the app's configuration alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from celegraph.config import Config, load_config


@dataclass(frozen=True)
class Framework:
    """Both are asked late: settings load lazily, and a test runner changes the database afterwards.

    `own_keys` stand among the options and are the door's to read.
    """

    options: Callable[[], Mapping[str, object]]
    database_url: Callable[[], str]
    own_keys: frozenset[str] = frozenset()


_framework: list[Framework] = []


def use(framework: Framework) -> None:
    """The framework of this process; a second one replaces the first."""
    _framework[:] = [framework]


def host_options(given: Mapping[str, object] | None) -> dict[str, object]:
    """The options in the app's configuration, else those in the framework's settings."""
    if given is None and _framework:
        given = _framework[0].options()
    return dict(given or {})


def default_database(options: Mapping[str, object]) -> str | None:
    """The framework's database, unless the options or the environment name one."""
    if "database_url" in options or "CELEGRAPH_DATABASE_URL" in os.environ or not _framework:
        return None
    return _framework[0].database_url()


def host_config(options: Mapping[str, object]) -> Config:
    """The checked configuration with the framework's database where none is named."""
    url = default_database(options)
    own = _framework[0].own_keys if _framework else frozenset()
    ours = {key: value for key, value in options.items() if key not in own}
    return load_config(ours if url is None else {**ours, "database_url": url})
