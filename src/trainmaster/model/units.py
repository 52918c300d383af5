"""Units: time in integer nanoseconds, GPUs in integer milli-GPUs.

Seconds (floats) exist only at the edges: files, command line, display. Inside,
integers make equal instants equal and sums exact.

>>> to_ns(1.5)
1500000000
>>> to_seconds(1_500_000_000)
1.5
>>> to_milli(0.46), to_milli(8), to_gpus(8000), to_gpus(460)
(460, 8000, 8, 0.46)
"""

from __future__ import annotations

from typing import Final

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""

HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR

LONGEST_S: Final = 1e9
"""Seconds that a setting may name at most, some 30 years: instants stay within 64 bits."""

GPU: Final = 1000
"""Milli-GPUs in a GPU."""


def to_ns(seconds: float) -> int:
    """Seconds to integer nanoseconds, rounded to the nearest.

    Whole seconds are converted exactly, whatever their size.
    """
    whole = int(seconds)
    return whole * SECOND + round((seconds - whole) * SECOND)


def to_seconds(ns: int) -> float:
    """Nanoseconds to float seconds."""
    return ns / SECOND


def to_milli(gpus: float) -> int:
    """GPUs to integer milli-GPUs, rounded to the nearest."""
    return round(gpus * GPU)


def to_gpus(milli: int) -> int | float:
    """Milli-GPUs to GPUs: an int when whole, else a float."""
    whole, rest = divmod(milli, GPU)
    return whole if rest == 0 else milli / GPU
