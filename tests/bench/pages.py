"""`make bench-pages`: what a page costs with a thousand open questions, in milliseconds of the server.

The web process's own processor time and the whole time of the request (database included), medians.
"""

from __future__ import annotations

import argparse
import statistics
import time

from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.ledger.pool import close_pools
from tests.contrib.web.crowd import crowded, pages_of, request_of

_PAGES = ("inbox", "runs", "approval", "run", "run_live")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--times", type=int, default=30)
    given = parser.parse_args()
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        crowded(server.url, given.questions)
        pages = pages_of(server.url)
        print(f"{'page':12}{'own ms':>10}{'whole ms':>10}{'kB':>8}   with {given.questions} open questions")  # noqa: T201
        for name in _PAGES:
            own, whole, size = [], [], 0
            for _ in range(given.times):
                processor, clock = time.process_time(), time.perf_counter()
                size = len(pages.respond(*request_of(name)).body)
                own.append(time.process_time() - processor)
                whole.append(time.perf_counter() - clock)
            row = (statistics.median(own) * 1000, statistics.median(whole) * 1000, size / 1000)
            print(f"{name:12}{row[0]:>10.1f}{row[1]:>10.1f}{row[2]:>8.1f}")  # noqa: T201
        close_pools()


if __name__ == "__main__":
    main()
