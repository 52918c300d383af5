"""What every command shares: where text goes, how JSON is printed, the progress bar."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BAR_AFTER_S = 1.0
"""A progress bar appears for whatever takes longer than this."""


def say(text: str = "") -> None:
    """Human text: to stdout on a terminal, else to stderr, so that pipes stay clean."""
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    print(text, file=stream)


def emit_json(document: Any) -> None:
    """The one JSON document of a `--json` call, on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


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
