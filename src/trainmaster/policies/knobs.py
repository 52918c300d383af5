"""Knobs: what can be set about a policy, with type, range, default and meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.model.errors import InputError, nearest

Value = float | int | bool | str
"""What a knob can hold."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting.

    Args:
        name: as in `--set POLICY.name=value`.
        default: its type is the knob's type.
        help: one line.
        low, high: inclusive range of a number.
        choices: allowed words of a str knob.

    >>> Knob("quantum_s", 60.0, "time slice, seconds", low=1).parse("90")
    90.0
    """

    name: str
    default: Value
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    def parse(self, value: object, owner: str = "") -> Value:
        """A value of the knob's type within its range, from text or from Python.

        Raises:
            InputError: it is neither.
        """
        where = f"knob {owner}.{self.name}" if owner else f"knob {self.name}"
        if isinstance(self.default, str):
            word = str(value)
            if self.choices and word not in self.choices:
                raise InputError(f"{where}: unknown value {word!r}", mend=nearest(word, self.choices))
            return word
        if isinstance(self.default, bool):
            return self._boolean(value, where)
        try:
            number = float(str(value))
        except ValueError:
            raise InputError(f"{where}: {value!r} is not a number", mend=self.range) from None
        if not (math.isfinite(number) and self.low <= number <= self.high):
            raise InputError(f"{where}: {value} is out of range", mend=self.range)
        if isinstance(self.default, int):
            if number != int(number):
                raise InputError(f"{where}: {value} is not a whole number", mend=self.range)
            return int(number)
        return number

    @property
    def range(self) -> str:
        """Type and range in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, str):
            return " | ".join(self.choices) or "text"
        kind = "whole number" if isinstance(self.default, int) else "number"
        low = "" if self.low == -math.inf else f" >= {self.low:g}"
        high = "" if self.high == math.inf else f" <= {self.high:g}"
        return f"{kind}{low}{' and' if low and high else ''}{high}"

    @staticmethod
    def _boolean(value: object, where: str) -> bool:
        word = str(value).lower()
        if word in ("true", "yes", "on", "1"):
            return True
        if word in ("false", "no", "off", "0"):
            return False
        raise InputError(f"{where}: {value!r} is neither true nor false")


def settings(knobs: tuple[Knob, ...], given: Mapping[str, object], owner: str) -> dict[str, Value]:
    """All knobs with the given values, the others at their defaults.

    Raises:
        InputError: an unknown knob or a bad value.
    """
    known = {knob.name: knob for knob in knobs}
    for name in given:
        if name not in known:
            raise InputError(f"policy {owner} has no knob {name!r}", mend=nearest(name, known))
    return {
        name: knob.parse(given[name], owner) if name in given else knob.default
        for name, knob in known.items()
    }
