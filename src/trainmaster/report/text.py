"""Numbers as people read them.

>>> duration(4320), duration(0.02), duration(7.5), duration(90061), duration(59 * 60 + 59.7)
('1 h 12 m', '< 0.1 s', '7.5 s', '1 d 1 h', '1 h')
>>> count(12345.0), percent(0.8721), percent(0.0004), times(4.94), gpus(0.5), gpus(8.0)
('12,345', '87.2 %', '0.04 %', '4.9', '0.5', '8')
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NBSP = "\N{NO-BREAK SPACE}"
MISSING = "–"
"""Stands for a figure that does not apply."""


def duration(seconds: float) -> str:
    """The two largest units: days and hours, hours and minutes, minutes and seconds."""
    if seconds < 0:
        return f"−{duration(-seconds)}"
    if 0 < seconds < 0.05:
        return "< 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if round(seconds) < 3600:
        return _two(round(seconds), 60, "m", "s")
    if round(seconds / 60) < 1440:
        return _two(round(seconds / 60), 60, "h", "m")
    if seconds < 100 * 86_400:
        return _two(round(seconds / 3600), 24, "d", "h")
    return f"{round(seconds / 86_400):,} d"


def _two(amount: int, base: int, large: str, small: str) -> str:
    whole, rest = divmod(amount, base)
    parts = [f"{whole} {large}"] if whole else []
    return " ".join([*parts, f"{rest} {small}"] if rest or not parts else parts)


def count(amount: float) -> str:
    """A whole number with thousands separators."""
    return f"{round(amount):,}"


def percent(share: float) -> str:
    """A share as a percentage: one decimal, or two significant digits below 1 %."""
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f} %"
    return f"{value:.1f} %" if abs(value) >= 0.995 else f"{value:.2g} %"


def whole_percent(share: float) -> str:
    """A share as a whole percentage, but never 0 or 100 unless it is.

    >>> whole_percent(0.0001), whole_percent(0.9999), whole_percent(0.42), whole_percent(1.0)
    ('< 1 %', '> 99 %', '42 %', '100 %')
    """
    value = round(100 * share)
    if value == 0 and share > 0:
        return "< 1 %"
    if value == 100 and share < 1:
        return "> 99 %"
    return f"{value} %"


def times(ratio: float) -> str:
    """A ratio with as many digits as it deserves.

    >>> times(1.234), times(12.34), times(1234.5)
    ('1.2', '12', '1,234')
    """
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def gpus(amount: float) -> str:
    """A number of GPUs, whole or a fraction."""
    return f"{amount:,.10g}"


def listing(words: Sequence[str]) -> str:
    """Words as an English list.

    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([part for part in (", ".join(words[:-1]), *words[-1:]) if part])


def plural(amount: float, noun: str) -> str:
    """
    >>> plural(1, "job"), plural(2000, "job")
    ('1 job', '2,000 jobs')
    """
    return f"{count(amount)} {noun}{'' if round(amount) == 1 else 's'}"


_INSIDE_QUANTITY = re.compile(
    r"(?<=\d) (?=(?:d|h|m|s|ms|%|GPU-h)(?!\w))|(?<=\d[ \u00a0][dhm]) (?=\d)|(?<=[<>]) (?=\d)"
)


def unbroken(words: str) -> str:
    """No line break inside a quantity: its spaces become no-break spaces.

    >>> unbroken("in 6 h 9 m, 2 times").split(" ")
    ['in', '6\\xa0h\\xa09\\xa0m,', '2', 'times']
    """
    return _INSIDE_QUANTITY.sub(NBSP, words)
