"""The command line, called as a user calls it."""

from __future__ import annotations

import sys

import pytest

from trainmaster.cli import main


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    before = sys.argv
    sys.argv = ["trainmaster", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = before
    output = capsys.readouterr()
    return int(stop.value.code or 0), output.out, output.err
