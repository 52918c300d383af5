"""What every command shares: where text goes, and how JSON is printed."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(text: str = "") -> None:
    """Human text: to stdout on a terminal, else to stderr, so that pipes stay clean."""
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    print(text, file=stream)


def emit_json(document: Any) -> None:
    """The one JSON document of a `--json` call, on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
