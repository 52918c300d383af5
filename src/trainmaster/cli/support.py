"""What every command shares: how options are read, where text goes, JSON, the progress bar."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from trainmaster.model.text import printable

if TYPE_CHECKING:
    from trainmaster.model.calendar import Calendar
    from trainmaster.traces import Trace

FORMAT_HELP = "auto; a trace format: csv, philly, helios, slurm, ...; or a reader in FILE.py[:Class]."

COLUMNS_HELP = (
    "For a CSV with names of its own: job_id=NAME,submit_s=NAME,num_gpus=NAME,...; units stay ours."
)
FROM_HELP = "Only jobs submitted from this instant on: seconds of the trace's clock, or a date."
TO_HELP = "Only jobs submitted before this instant."

BAR_AFTER_S = 1.0
"""A progress bar appears for whatever takes longer than this."""


_stdout: TextIO | None = None


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Inside, only `output()` is stdout: what a user's policy or reader prints goes to stderr.

    Forked workers inherit it.
    """
    global _stdout
    _stdout = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout = None


def output() -> TextIO:
    """The stdout that belongs to the command's own results."""
    return _stdout or sys.stdout


def say(text: str = "") -> None:
    """Human text: to stdout on a terminal, else to stderr, so that pipes stay clean."""
    stream = output() if output().isatty() else sys.stderr
    print("\n".join(printable(line.rstrip(" ")) for line in text.split("\n")), file=stream)


def emit_json(document: Any) -> None:
    """The one JSON document of a `--json` call, on stdout."""
    json.dump(document, output(), indent=2, allow_nan=False)
    output().write("\n")
    output().flush()


def path(text: str) -> Path:
    """A path from the command line; nothing at all would mean the current folder."""
    if not str(text):
        raise typer.BadParameter("is empty, expected a path")
    return Path(text)


def own_columns(texts: list[str] | None) -> dict[str, str]:
    """--columns: what the file calls columns of the schema. A name may hold blanks and commas.

    >>> own_columns(["submit_s=Queued At,num_gpus=GPUs, all"])
    {'submit_s': 'Queued At', 'num_gpus': 'GPUs, all'}
    """
    from trainmaster.model.errors import InputError

    names: dict[str, str] = {}
    for pair in (pair for text in texts or () for pair in re.split(r",(?=\s*\w+\s*=)", text)):
        ours, equals, own = (part.strip() for part in pair.partition("="))
        if not (ours and equals and own):
            raise InputError(f"can't read --columns {pair}", mend="write submit_s=NAME,num_gpus=NAME")
        if ours in names:
            raise InputError(f"--columns names {ours} twice", mend="give it once")
        names[ours] = own
    return names


def span(start: str | None, end: str | None, calendar: Calendar | None) -> tuple[float | None, float | None]:
    """--from and --to as seconds of a clock; None = open on that side."""
    from trainmaster.model.calendar import read_instant
    from trainmaster.traces.slicing import check_span

    start_s = None if start is None else read_instant(start, "--from", calendar)
    end_s = None if end is None else read_instant(end, "--to", calendar)
    check_span(start_s, end_s)
    return start_s, end_s


def sliced(trace: Trace, start: str | None, end: str | None) -> Trace:
    """The jobs submitted within --from and --to; refused when none of them is."""
    from trainmaster.model.errors import InputError
    from trainmaster.traces import slice_trace

    if start is None and end is None:
        return trace
    start_s, end_s = span(start, end, trace.calendar)
    part = slice_trace(trace, start_s=start_s, end_s=end_s)
    if trace.jobs and not part.jobs:
        words = [f"--from {start}"] if start is not None else []
        words += [f"--to {end}"] if end is not None else []
        first, last = (instant(trace.jobs[at].submit, trace.calendar) for at in (0, -1))
        raise InputError(
            f"{' '.join(words)} leaves none of the {len(trace):,} jobs",
            file=trace.path,
            mend=f"they are submitted from {first} to {last}",
        )
    return part


def instant(ns: int, calendar: Calendar | None) -> str:
    """An instant in seconds of its clock, and its date where that is known.

    >>> from trainmaster.model.calendar import Calendar
    >>> instant(90 * 10**9, None), instant(90 * 10**9, Calendar())
    ('90 s', '90 s (1970-01-01 00:01:30 UTC)')
    """
    date = calendar.text(ns) if calendar is not None else ""
    return f"{round(ns / 1e9, 3):.12g} s" + (f" ({date})" if date else "")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, on a terminal only and only for slow work; call it with (done, total).

    It refreshes when it is called and has no thread of its own: work may fork.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    begun = shown = time.monotonic()
    bar = Progress(console=Console(stderr=True), auto_refresh=False, transient=True)
    task = bar.add_task(title)

    def update(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun < BAR_AFTER_S or now - shown < 0.1:
            return
        shown = now
        bar.start()
        bar.update(task, completed=done, total=total)
        bar.refresh()

    try:
        yield update
    finally:
        bar.stop()
