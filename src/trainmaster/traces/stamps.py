"""Texts of wall-clock instants to nanoseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from trainmaster.model.errors import InputError
from trainmaster.model.units import SECOND
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.schema import parse_time
from trainmaster.traces.source import Source

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_LOCAL: Final = "no time zone"
_ABSENT: Final = frozenset(("", "None", "none", "null", "NULL", "Unknown", "N/A", "NaN", "nan", "NaT"))


class Stamps:
    """Reads the instants of one file, which must all be written alike.

    "2020-06-09 18:41:01", "2020-06-09T18:41:01" (local time), "2023-03-01 00:18:22+08:00"
    (with a zone) and "1591699261" (seconds since 1970) are understood. A file where some
    instants have a zone and others have none is at fault as a whole: they can't be ordered.

    Args:
        source: the file, for messages; its `zone` is set.
        problems: where ambiguous instants are noted.
        local: the zone of instants without one; None takes them as they are (no leaps).
    """

    def __init__(self, source: Source, problems: Problems, local: tzinfo | None = None) -> None:
        self._source = source
        self._problems = problems
        self._local = local
        self._kind = ""
        self._offsets: dict[str, tuple[timedelta, bool]] = {}

    def instant(self, text: str, row: int, column: str, reason: str = "submit_invalid") -> int:
        """Nanoseconds since 1970; raises `RowFault` when absent or no instant."""
        found = self.optional(text, row, column, reason)
        if found is None:
            raise RowFault(reason.replace("_invalid", "_missing"), "is empty", column=column)
        return found

    def optional(self, text: str, row: int, column: str, reason: str = "time_invalid") -> int | None:
        """The same, None for a text that stands for "not known"."""
        if text in _ABSENT:
            return None
        if text.isdecimal() and len(text) > 8:
            if self._kind != "seconds since 1970":
                self._set_kind("seconds since 1970", row, column)
            return _or_fault(text, column, reason)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise RowFault(
                reason, f"{text!r} is not an instant", column=column, mend="such as 2020-06-09 18:41:01"
            ) from None
        kind = _LOCAL if moment.tzinfo is None else "a time zone"
        if kind != self._kind:
            self._set_kind(kind, row, column)
        try:
            return self._since_epoch(moment, text, row, column)
        except OverflowError:
            raise RowFault(reason, f"{text!r} is out of range", column=column) from None

    def is_ambiguous(self, text: str) -> bool:
        """Whether a text without a zone names two instants, or none, because clocks change."""
        if self._local is None or self._kind != _LOCAL:
            return False
        return self._offset(datetime.fromisoformat(text), text)[1]

    def _since_epoch(self, moment: datetime, text: str, row: int, column: str) -> int:
        if moment.tzinfo is not None:
            since = moment - _EPOCH
        elif self._local is None:
            since = moment - _LOCAL_EPOCH
        else:
            offset, ambiguous = self._offset(moment, text)
            since = moment - _LOCAL_EPOCH - offset
            if ambiguous:
                message = f"{text} exists twice or never (clocks change); taken as the first"
                self._problems.note("ambiguous_time", row, column=column, message=message)
        return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1000

    def _offset(self, moment: datetime, text: str) -> tuple[timedelta, bool]:
        """Offset of the local zone, and whether the other side of a change of clocks is meant as well."""
        hour = text[:13]  # clocks change on the hour
        known = self._offsets.get(hour)
        if known is None:
            moment = moment.replace(tzinfo=self._local)
            offset = moment.utcoffset() or timedelta(0)
            known = self._offsets[hour] = (offset, offset != moment.replace(fold=1).utcoffset())
        return known

    def _set_kind(self, kind: str, row: int, column: str) -> None:
        if self._kind:
            raise InputError(
                f"this time has {kind}, earlier ones have {self._kind}",
                file=self._source.path,
                row=row,
                column=column,
                mend="write all times of a file alike",
            )
        self._kind = kind
        self._source.zone = "" if kind == _LOCAL and self._local is None else "UTC"


def _or_fault(text: str, column: str, reason: str) -> int:
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        raise RowFault(reason, f"{text!r} is out of range", column=column) from None
