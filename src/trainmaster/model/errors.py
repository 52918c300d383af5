"""What can go wrong, as a tree.

::

    TrainmasterError
    ├── InputError      the user's file, option or value is wrong (exit code 2)
    ├── OutputError     a result can't be written (exit code 1)
    ├── PolicyError     a policy contradicts itself, or its plan can't be carried out (exit code 1)
    └── EngineError     an invariant of the engine does not hold (exit code 1): our bug

Every message is one line that says where (file, row, column; policy, job, node),
what was expected, and how to mend it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from trainmaster.model.text import printable


class TrainmasterError(Exception):
    r"""Base of every error that Trainmaster raises on purpose; its message is one line.

    >>> print(TrainmasterError("job a\x1b[2J"))
    job a\x1b[2J
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class InputError(TrainmasterError):
    """Something the user gave is wrong.

    Args:
        message: what is wrong and what was expected.
        file: the file at fault, if any.
        row: 1-based line or record number in that file.
        column: name of the column or key.
        mend: what to do about it.

    >>> str(InputError("'x' is not a number", file="a.csv", row=3, column="submit_s", mend="use seconds"))
    "a.csv, row 3, column submit_s: 'x' is not a number (use seconds)"
    """

    def __init__(
        self,
        message: str,
        *,
        file: object = None,
        row: int | None = None,
        column: str | None = None,
        mend: str | None = None,
    ) -> None:
        self.message = message
        self.file = None if file is None else str(file)
        self.row = row
        self.column = column
        self.mend = mend
        where = [part for part in (self.file, row and f"row {row}", column and f"column {column}") if part]
        prefix = f"{', '.join(where)}: " if where else ""
        suffix = f" ({mend})" if mend else ""
        super().__init__(f"{prefix}{message}{suffix}")


class OutputError(TrainmasterError):
    """A result can't be written: the disk is full, or the folder is not ours."""


class PolicyError(TrainmasterError):
    """A policy planned something impossible, or contradicts itself; names policy, job and node."""


class EngineError(TrainmasterError):
    """An invariant of the engine does not hold. Please report it."""


FAILURES: Final = (Exception, SystemExit, GeneratorExit)
"""What somebody's own code may raise, a policy or a reader: all but an interruption from outside."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word, or lists what is known.

    >>> nearest("strf", ["fifo", "srtf"])
    "did you mean 'srtf'?"
    >>> nearest("qqq", ["fifo", "srtf"])
    'known: fifo, srtf'
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
