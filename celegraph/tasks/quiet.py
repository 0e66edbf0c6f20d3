"""Keeps the clock out of the log: a tick every second would bury everything else at INFO."""

from __future__ import annotations

import logging

from celegraph.beat_schedule import TICKS

# Celery's loggers that speak of single tasks: received, succeeded, sending due task.
_LOGGERS = ("celery.worker.strategy", "celery.app.trace", "celery.beat")


class _NoTicks(logging.Filter):
    """Drops records at INFO and below that are about a tick; warnings and errors pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a record that names one of our ticks."""
        if record.levelno > logging.INFO:
            return True
        args = record.args
        named = args.values() if isinstance(args, dict) else args or ()
        return not any(isinstance(value, str) and value in TICKS for value in named)


_filter = _NoTicks()


def quieten() -> None:
    """Idempotent; pool children inherit it."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_filter)
