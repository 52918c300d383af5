"""Dates beside the time since the first submission, where the trace's clock tells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Calendar:
    """When the first submission was: seconds since 1970, or None where nobody knows.

    `zone` is "UTC", or "" where the log holds local times without saying whose.

    >>> Calendar(1_700_000_000.0).at(86_400.0), Calendar(None).at(86_400.0)
    ('2023-11-15 22:13 UTC', '')
    """

    start_s: float | None
    zone: str = "UTC"

    @property
    def about(self) -> str:
        """What the dates are; "" where there are none."""
        if self.start_s is None:
            return ""
        return self.zone or "in the local time of the log"

    def at(self, since_s: float) -> str:
        """The date and time so many seconds after the first submission; "" where unknown."""
        moment = self._moment(since_s)
        return "" if moment is None else f"{moment:%Y-%m-%d %H:%M} {self.zone}".rstrip()

    def span(self, from_s: float, to_s: float) -> str:
        """From when to when; a date that both share is named once.

        >>> Calendar(1_700_000_000.0).span(0, 3600), Calendar(1_700_000_000.0).span(0, 7200)
        ('2023-11-14 22:13 to 23:13 UTC', '2023-11-14 22:13 to 2023-11-15 00:13 UTC')
        """
        first, last = self._moment(from_s), self._moment(to_s)
        if first is None or last is None:
            return ""
        end = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
        return f"{first:%Y-%m-%d %H:%M} to {end} {self.zone}".rstrip()

    def ticks(self, since_s: Sequence[float]) -> list[str]:
        """A short label for each tick: its day; for a further tick on the same day, its time.

        >>> Calendar(1_700_000_000.0).ticks([0, 3600, 7200])
        ['14 Nov', '23:13', '15 Nov']
        """
        moments = [moment for tick in since_s if (moment := self._moment(tick)) is not None]
        labels: list[str] = []
        for index, moment in enumerate(moments):
            same_day = index > 0 and moments[index - 1].date() == moment.date()
            day = f"{moment.day} {_MONTHS[moment.month - 1]}"
            labels.append(f"{moment:%H:%M}" if same_day else day)
        return labels

    def _moment(self, since_s: float) -> datetime | None:
        return None if self.start_s is None else _EPOCH + timedelta(seconds=self.start_s + since_s)
