"""What every command shares: how options are read, where text goes, JSON, the progress bar."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

import typer

from trainmaster.model.text import printable

FORMAT_HELP = "auto; a trace format: csv, philly, helios, slurm, ...; or a reader in FILE.py[:Class]."

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
    print("\n".join(map(printable, text.split("\n"))), file=stream)


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
