"""`python -m celegraph.dev.clean`: remove what local servers kept for this working directory."""

from __future__ import annotations

import contextlib
import os
import shutil

from celegraph.dev.account import copy_place
from celegraph.dev.binaries import find_postgres, find_valkey
from celegraph.dev.errors import ServerNotFound
from celegraph.dev.home import Home, lock_directory
from celegraph.dev.postgres import Postgres
from celegraph.dev.stray import end_stray
from celegraph.dev.valkey import Valkey


def clean() -> None:
    """Data and copied programs of stopped servers; `HomeInUse` while they run."""
    home = Home.of_working_directory()
    for name in (Postgres.name, Valkey.name):
        lock = lock_directory(home.directory(name))
        try:
            end_stray(home.directory(name))
            home.remove(name)
        finally:
            os.close(lock)
    # Workers and mail of `celegraph dev`, which never runs without the servers.
    home.remove()
    for find in (find_postgres, find_valkey):
        with contextlib.suppress(ServerNotFound):
            shutil.rmtree(copy_place(find()), ignore_errors=True)


if __name__ == "__main__":
    clean()
