"""Readers of logs that are a table with a header: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from trainmaster.model.errors import InputError
from trainmaster.model.job import Job, Request
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Reader
from trainmaster.traces.schema import delimiter_hint, found_hint
from trainmaster.traces.source import Source
from trainmaster.traces.stamps import Stamps
from trainmaster.traces.trace import Truth


class Pool:
    """Makes equal requests and equal texts the same object: less memory, faster placement."""

    def __init__(self) -> None:
        self._requests: dict[Request, Request] = {}
        self._texts: dict[str, str] = {"": ""}

    def request(self, gpus: int, gpu_types: tuple[str, ...] = (), nodes: int | None = None) -> Request:
        """The request for `gpus` milli-GPUs."""
        request = Request(gpus, gpu_types, nodes)
        return self._requests.setdefault(request, request)

    def text(self, text: str) -> str:
        """The text itself."""
        return self._texts.setdefault(text, text)


class Reading:
    """One pass over one file: what a table reader needs besides the fields of a row."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.stamps = Stamps(source, problems)
        self.pool = Pool()


class TableReader(Reader):
    """A table with a header line; a subclass names the columns and turns one row into a job."""

    required: ClassVar[tuple[str, ...]]
    """Columns without which the file is at fault."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Columns that are used when they are there; `record` gets "" when not."""
    signature: ClassVar[tuple[str, ...]]
    """Columns that together occur in no other format."""
    delimiter: ClassVar[str] = ","
    quoted: ClassVar[bool] = True
    """Whether a field may stand in double quotes."""

    @abstractmethod
    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth] | None:
        """Job and truth of one row, None when the row is no job of its own; raises `RowFault`."""

    def check(self, names: list[str], reading: Reading) -> None:
        """Raise `InputError` when the columns found can't make a trace."""

    def detect(self, head: str, path: Path) -> bool:
        names = {name.strip().strip('"') for name in head.lstrip().split("\n", 1)[0].split(self.delimiter)}
        return names.issuperset(self.signature)

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        table = source.table(self.delimiter, quoted=self.quoted, drop=problems.drop_unread)
        first_line, names = next(table, (1, []))
        wanted = self._places([name.strip() for name in names], source, first_line)
        absent = {name: "" for name in self.optional if name not in dict(wanted)}
        width = len(names)
        reading = Reading(source, problems)
        self.check([name for name, _ in wanted], reading)
        for line, row in table:
            problems.rows += 1
            try:
                if len(row) != width:
                    raise RowFault("field_count", f"{len(row)} fields, the header has {width}")
                pair = self.record(
                    {**{name: row[place].strip() for name, place in wanted}, **absent}, line, reading
                )
            except RowFault as fault:
                problems.drop_fault(fault, line)
                continue
            if pair is None:
                problems.rows -= 1
            else:
                yield pair

    def _places(self, names: list[str], source: Source, line: int) -> list[tuple[str, int]]:
        for name in names:
            if name and names.count(name) > 1:
                raise InputError("the column is there twice", file=source.path, row=line, column=name)
        known = (*self.required, *self.optional)
        for name in self.required:
            if name not in names:
                mend = delimiter_hint(self.delimiter.join(names), known, self.delimiter)
                mend = mend or found_hint(name, names)
                raise InputError(
                    f"the column is missing in this {self.name} trace",
                    file=source.path,
                    row=line,
                    column=name,
                    mend=mend,
                )
        return [(name, place) for place, name in enumerate(names) if name in known]


def id_field(text: str, column: str) -> str:
    """The id of a job; raises `RowFault` when empty."""
    if not text:
        raise RowFault("id_missing", "is empty", column=column)
    return text
