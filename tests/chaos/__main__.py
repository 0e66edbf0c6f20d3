"""`make chaos SEED=1 MINUTES=10`: everything at once, with every fault that people report.

Real workers, control worker, beat, Valkey, PostgreSQL and a provider with its own log, under a schedule of
overlapping faults that the seed decides.  The last line says what became of it; on a violation the run's
trace is printed, the logs are kept and the exit status is 1.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from celegraph.dev.servers import BROKER_VARIABLES, DATABASE_VARIABLES
from tests.chaos.chaos import chaos
from tests.crash.fleet import say


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=3)
    options = parser.parse_args()
    # Never the environment's: it might be somebody's real database.
    for name in (*DATABASE_VARIABLES, *BROKER_VARIABLES):
        os.environ.pop(name, None)
    # They say at every try that a server is away; that is the idea.
    for talkative in ("psycopg.pool", "celegraph"):
        logging.getLogger(talkative).setLevel(logging.CRITICAL)
    directory = Path(tempfile.mkdtemp(prefix=f"celegraph-chaos-{options.seed}-"))
    good = False
    try:
        verdict = chaos(
            directory, say, seed=options.seed, seconds=options.minutes * 60, workers=options.workers
        )
        good = verdict.good
    finally:
        if good:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            say(f"logs are kept in {directory}")
    say(str(verdict))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
