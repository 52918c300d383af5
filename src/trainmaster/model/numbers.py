"""Numbers that come from somebody's Python code."""

from __future__ import annotations

from math import nan
from numbers import Real
from operator import index
from typing import Any

from trainmaster.model.errors import InputError


def whole(number: object, what: str, *, low: int | None = None) -> int:
    """A whole number as an int, NumPy's included; True and 2.0 are none.

    Args:
        number: what was given.
        what: what it is called in the message.
        low: the smallest that will do.

    Raises:
        InputError: it is no whole number, or too small.

    >>> whole(3, "seed")
    3
    """
    bound = "" if low is None else f" >= {low}"
    try:
        value = index(number)  # type: ignore[arg-type]
    except TypeError:
        value = None
    if value is None or isinstance(number, bool) or (low is not None and value < low):
        raise InputError(f"{what} is {number!r:.60}, not a whole number{bound}")
    return value


def real(number: Any, what: str, low: float, high: float, mend: str) -> float:
    """A number within [low, high], as an int or a float; NumPy's are numbers, True is none.

    Raises:
        InputError: it is no number, or beyond.

    >>> real(0.5, "weight", 0, 1, "give a share")
    0.5
    """
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    value: float = number if type(number) is int else float(number) if is_number else nan
    if not low <= value <= high:
        raise InputError(f"{what} is {number!r:.60}", mend=mend)
    return value
