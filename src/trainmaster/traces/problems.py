"""What was wrong with the rows of a trace: counted by reason, with a few examples."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainmaster.model.errors import InputError
from trainmaster.model.text import printable


class RowFault(Exception):  # noqa: N818 (a fault of the row, not an error of the program)
    """One row cannot be used. Readers raise it while parsing and count it with `Problems.drop`.

    Args:
        reason: stable machine-readable reason such as ``"duration_not_positive"``.
        message: what is wrong with the value, in words.
        column: the column at fault; None when it is the row as a whole.
        mend: what the user can do about it.
    """

    def __init__(
        self, reason: str, message: str, *, column: str | None = None, mend: str | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.column = column
        self.mend = mend


@dataclass(frozen=True, slots=True)
class Example:
    """One row at fault, kept for display; `row` is None for what concerns the whole file."""

    reason: str
    message: str
    row: int | None = None
    column: str | None = None
    dropped: bool = True
    mend: str | None = None


@dataclass
class Problems:
    """Counts of rows that were dropped, and of oddities in rows (or files) that were kept.

    Args:
        file: the file that is read, for messages.
        strict: raise `InputError` at the first row that would be dropped.
        keep: number of examples kept for each reason.

    >>> problems = Problems("a.csv")
    >>> problems.drop("zero_gpus", 7, message="0 GPUs", column="num_gpus")
    >>> problems.dropped, problems.dropped_rows
    ({'zero_gpus': 1}, 1)
    >>> print(problems.lines()[0])
    dropped 1 row, zero_gpus: row 7, column num_gpus: 0 GPUs
    """

    file: str = ""
    strict: bool = False
    keep: int = 3
    rows: int = 0
    """Rows (or records) that describe a job, as counted by the reader."""
    dropped: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    def drop(
        self, reason: str, row: int, *, message: str = "", column: str | None = None, mend: str | None = None
    ) -> None:
        """Count one row that is not used; raises `InputError` when strict."""
        if self.strict:
            raise InputError(message or reason, file=self.file, row=row, column=column, mend=mend)
        self._count(self.dropped, Example(reason, message, row, column, mend=mend))

    def drop_fault(self, fault: RowFault, row: int) -> None:
        """Count the row that `fault` is about."""
        self.drop(fault.reason, row, message=fault.message, column=fault.column, mend=fault.mend)

    def drop_unread(self, fault: RowFault, row: int) -> None:
        """Count a row that describes a job and that the reader never gets to see."""
        self.rows += 1
        self.drop_fault(fault, row)

    def note(
        self, reason: str, row: int | None = None, *, message: str = "", column: str | None = None
    ) -> None:
        """Count something odd about a row that is used all the same, or about the file."""
        self._count(self.noted, Example(reason, message, row, column, dropped=False))

    def _count(self, counts: dict[str, int], example: Example) -> None:
        seen = counts.get(example.reason, 0)
        counts[example.reason] = seen + 1
        if seen < self.keep:
            self.examples.append(example)

    @property
    def dropped_rows(self) -> int:
        """Number of rows that were dropped, whatever the reason."""
        return sum(self.dropped.values())

    def example(self, reason: str) -> str:
        """The first row that was dropped for a reason and what to do about it; "" where there is none."""
        found = next((each for each in self.examples if each.dropped and each.reason == reason), None)
        if found is None:
            return ""
        mend = f" ({found.mend})" if found.mend else ""
        return f"{_show(found).removeprefix(': ')}{mend}"

    def lines(self) -> list[str]:
        """One line for each reason, with its first example; dropped rows first, most frequent first."""
        first: dict[tuple[bool, str], Example] = {}
        for example in self.examples:
            first.setdefault((example.dropped, example.reason), example)
        found = []
        for verb, dropped, counts in (("dropped", True, self.dropped), ("noted", False, self.noted)):
            for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
                rows = f"{count:,} row{'' if count == 1 else 's'}" if dropped else f"{count:,}x"
                found.append(f"{verb} {rows}, {reason}{_show(first[(dropped, reason)])}")
        return found


def _show(example: Example) -> str:
    where = [f"row {example.row}"] if example.row is not None else []
    if example.column:
        where.append(f"column {example.column}")
    text = ": ".join(part for part in (", ".join(where), example.message) if part)
    return f": {printable(text)}" if text else ""
