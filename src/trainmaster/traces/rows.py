"""The rows of a text table, each by itself: a faulty one takes no other with it."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from trainmaster.traces.problems import RowFault

FIELD_LIMIT: Final = 131_072
"""Characters of a field, at most; more is damage, not a name or a number."""

_LINES_AHEAD: Final = 100
"""Lines that are looked through for the end of a quoted field."""


class Rows:
    """Iterates over (line number, fields), or (line number, fault); blank lines are skipped.

    A row ends with its line. A quoted field that runs on to a later line makes one row at
    fault of all these lines when they are a proper record. When they aren't, the quote is a
    stray one: its line alone is at fault and reading goes on with the next, since a stray
    quote would else swallow any number of rows.

    >>> for row in Rows(['a,"b"\\n', '"c,d\\n', "e,f\\n"], ","):
    ...     print(row)
    (1, ['a', 'b'])
    (2, RowFault('a quoted field does not end on its line'))
    (3, ['e', 'f'])
    """

    def __init__(self, lines: Iterable[str], delimiter: str, *, quoted: bool = True) -> None:
        self._lines = iter(lines)
        self._delimiter = delimiter
        self._quoted = quoted
        self._ahead: deque[str] = deque()

    def __iter__(self) -> Iterator[tuple[int, list[str] | RowFault]]:
        delimiter, quoted = self._delimiter, self._quoted
        number = 0
        while (text := self._next()) is not None:
            number += 1
            text = text.rstrip("\r\n")
            if quoted and '"' in text:
                row, more = self._quoted_row(text)
                yield number, row
                number += more
            elif text:
                fields = text.split(delimiter)
                long = len(text) > FIELD_LIMIT and max(map(len, fields)) > FIELD_LIMIT
                yield number, _too_long() if long else fields

    def _next(self) -> str | None:
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def _quoted_row(self, text: str) -> tuple[list[str] | RowFault, int]:
        """The row that begins with this line, and how many further lines belong to it."""
        lines = [f"{text}\n"]
        try:
            row = next(csv.reader(lines, delimiter=self._delimiter))
        except csv.Error:
            return _too_long(), 0
        if not row[-1].endswith("\n"):
            return row, 0
        more: list[str] = []
        while len(more) < _LINES_AHEAD and (line := self._next()) is not None:
            more.append(line)
            lines.append(line.rstrip("\r\n") + "\n")
            if '"' in line and not self._runs_on(lines):
                if not self._is_record(lines):
                    break
                message = f"a quoted field runs over the end of its line, {len(more)} further"
                return RowFault("line_break", message, mend="one row a line"), len(more)
        self._ahead.extendleft(reversed(more))
        return RowFault("quote_open", "a quoted field does not end on its line", mend="remove the quote"), 0

    def _runs_on(self, lines: list[str]) -> bool:
        """Whether the quoted field is still open behind the last line."""
        reader = csv.reader([*lines, '"\n'], delimiter=self._delimiter)
        try:
            next(reader)
        except csv.Error:
            return False
        return reader.line_num > len(lines)

    def _is_record(self, lines: list[str]) -> bool:
        """Whether the lines are one record, with quotes only around whole fields."""
        try:
            return len(list(csv.reader(lines, delimiter=self._delimiter, strict=True))) == 1
        except csv.Error:
            return False


def _too_long() -> RowFault:
    return RowFault("field_too_long", f"a field has more than {FIELD_LIMIT:,} characters")
