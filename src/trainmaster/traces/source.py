"""Opening a trace: plain or gzip, as text, with every fault of the file told in one line."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from trainmaster.model.errors import InputError
from trainmaster.traces.problems import RowFault
from trainmaster.traces.rows import Rows

HEAD_CHARS = 8192
"""Number of characters that readers see when they recognize a format."""


class Source:
    """One file (or folder) that a reader reads, with the facts that the reader finds out.

    A reader asks for `text()` or `table()`; faults of the file come out as `InputError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.synthetic = False
        """Set by the reader when the file says that its jobs were generated."""
        self.zone = ""
        """Set by a wall-clock reader: the time zone of its instants as text, "" for unknown local time."""

    @contextmanager
    def text(self, path: Path | None = None) -> Iterator[TextIO]:
        """The file (or another one beside it) as UTF-8 text, unpacked when it is gzip."""
        path = path or self.path
        if path.is_fifo():
            raise InputError(
                "is a pipe, and a trace is read twice", file=path, mend="write it to a file first"
            )
        with translated(path), path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            unpacked = gzip.GzipFile(fileobj=raw) if packed else raw
            # utf-8-sig: spreadsheets put a byte order mark in front of the first column's name.
            with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as text:
                yield text

    def head(self) -> str:
        """The first characters of the file."""
        with self.text() as text:
            return text.read(HEAD_CHARS)

    def listing(self) -> str:
        """Names in the folder, one a line, sorted."""
        with translated(self.path):
            return "\n".join(sorted(entry.name for entry in self.path.iterdir()))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line number and text of every line."""
        with self.text() as text:
            yield from enumerate(text, 1)

    def table(
        self,
        delimiter: str = ",",
        path: Path | None = None,
        *,
        quoted: bool = True,
        header: bool = True,
        drop: Callable[[RowFault, int], None] | None = None,
    ) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of every row, the header included; blank lines are skipped.

        Args:
            delimiter: between two fields.
            path: another file beside this one.
            quoted: a field may stand in double quotes; else a quote is any character.
            header: the first row names the columns, so its faults are the file's.
            drop: told (fault, line) of a row that can't be taken apart, which is passed over:
                `Problems.drop_unread` where each row is a job. Without it such a row raises
                `InputError`.
        """
        path = path or self.path
        with self.text(path) as text:
            for line, row in Rows(text, delimiter, quoted=quoted):
                if not isinstance(row, RowFault):
                    header = False
                    yield line, row
                elif drop is None or header:
                    raise InputError(row.message, file=path, row=line, column=row.column, mend=row.mend)
                else:
                    drop(row, line)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Faults of the file at `path` as `InputError`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError("the gzip data are cut off or damaged", file=path, mend="fetch it again") from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", file=path, mend="give a trace as text, plain or .gz") from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
