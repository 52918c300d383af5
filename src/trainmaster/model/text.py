"""Text that somebody else wrote, on its way to a terminal, a page or a line of a file."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, marks that turn the direction of writing, lone surrogates."""


def is_clean(text: str) -> bool:
    """Whether a name has no character that would steer a terminal or break a line.

    >>> is_clean("vision team"), is_clean("équipe 视觉"), is_clean("\\x1b[2J"), is_clean("a\\nb")
    (True, True, False, False)
    """
    return text.isprintable() or _CONTROL.search(text) is None


def printable(text: str) -> str:
    r"""The text in one line, with control characters as escapes.

    >>> print(printable("a\x1b[2J\nb"))
    a\x1b[2J\nb
    """
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
