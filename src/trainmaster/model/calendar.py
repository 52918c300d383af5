"""Dates on a clock that counts seconds: which date an instant is, and which instant a date is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trainmaster.model.errors import InputError
from trainmaster.model.units import SECOND, to_ns

EPOCH_FROM: Final = 1_000_000_000 * SECOND
"""A clock whose first instant is this late (September 2001) is taken to count from 1970."""

EXAMPLES: Final = "such as 86400, 2026-11-16 or 2026-11-16T08:00"

_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The dates of a clock.

    Args:
        zero: the clock's instant 0, nanoseconds since 1970-01-01 00:00 in the zone.
        zone: "UTC"; "" = local time of a place that nobody named, taken as it was written.

    >>> Calendar(0, "UTC").text(1_793_491_200 * SECOND)
    '2026-11-01 00:00:00 UTC'
    """

    zero: int = 0
    zone: str = "UTC"

    def text(self, instant: int) -> str:
        """The date of an instant (ns) to the second; empty when no calendar has it."""
        try:
            moment = _EPOCH + timedelta(seconds=(self.zero + instant) // SECOND)
        except OverflowError:
            return ""
        return f"{moment:%Y-%m-%d %H:%M:%S} {self.zone}".rstrip()


def calendar_of(first: int) -> Calendar | None:
    """The calendar of a clock of which only its first instant is known (ns).

    >>> calendar_of(0), calendar_of(1_793_491_200 * SECOND)
    (None, Calendar(zero=0, zone='UTC'))
    """
    return Calendar() if first >= EPOCH_FROM else None


def recorded_calendar(trace: Mapping[str, Any]) -> Calendar | None:
    """The calendar that the ``trace`` entry of a summary.json tells of.

    >>> recorded_calendar({"start_s": 60, "start_unix_s": 86_460, "zone": "local"})
    Calendar(zero=86400000000000, zone='')
    """
    start = trace.get("start_unix_s")
    if start is None:
        return None
    zone = trace["zone"]
    return Calendar(to_ns(start) - to_ns(trace["start_s"]), "" if zone == "local" else zone)


def read_instant(text: str, option: str, calendar: Calendar | None) -> float:
    """Seconds of the clock, from a number of seconds or an ISO date; a date alone is its first instant.

    Raises:
        InputError: neither of the two, or a date on a clock without dates; names the option.

    >>> read_instant("1.5", "--from", None), read_instant("1970-01-02", "--from", Calendar())
    (1.5, 86400.0)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text}: neither seconds nor a date", mend=EXAMPLES) from None
    if calendar is None:
        message = f"{option} {text} is a date, and this trace's clock has none"
        raise InputError(message, mend="give seconds of the trace's clock, such as 86400")
    if moment.tzinfo is not None:
        if not calendar.zone:
            message = f"{option} {text} has a time zone, and the times of this trace have none"
            raise InputError(message, mend="write the date as the log does, without a zone")
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    since = moment - _EPOCH
    return (to_ns(since.total_seconds()) - calendar.zero) / SECOND
