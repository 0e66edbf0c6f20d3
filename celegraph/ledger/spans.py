"""How a span of time reaches PostgreSQL: as so many microseconds, never as days.

psycopg writes a timedelta of 24 hours as "1 day", and a day is added by the calendar of the session's
time zone: on the night the clocks change it has 23 or 25 hours.  Deadlines are instants.
"""

from __future__ import annotations

from datetime import timedelta

from psycopg.adapt import AdaptersMap, Buffer
from psycopg.types.datetime import TimedeltaDumper

_MICROSECOND = timedelta(microseconds=1)


class _Span(TimedeltaDumper):
    def dump(self, obj: timedelta) -> Buffer:
        """An interval without days."""
        return b"%d microseconds" % (obj // _MICROSECOND)


def exact_spans(adapters: AdaptersMap) -> None:
    """Make every timedelta that goes through this connection or cursor an exact span."""
    adapters.register_dumper(timedelta, _Span)
