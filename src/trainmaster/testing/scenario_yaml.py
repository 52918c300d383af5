"""YAML whose values know where they stand, so that every error names file, line and key.

Keys and scalars are taken as they were written: a job may be called `no` or `007`.

>>> document = parse("jobs:\\n  no: {runs: 15m}\\n", "a.yaml")[0]
>>> name, job = document.items()[0][1].items()[0]
>>> name, job.items()[0][1].seconds()
('no', 900000000000)
>>> job.items()[0][1].whole()
Traceback (most recent call last):
...
trainmaster.model.errors.InputError: a.yaml, row 2, column jobs.no.runs: '15m' is not a whole number
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from reprlib import repr as shown

import yaml

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.text import is_clean
from trainmaster.model.units import GPU, LONGEST_S, SECOND

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
"""Seconds in the units that a time may be written in; without one it is in seconds."""

LARGEST = 10**9


def read(path: Path) -> list[Value]:
    """The documents of a file.

    Raises:
        InputError: it can't be read, is no YAML, or holds nothing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except UnicodeDecodeError:
        raise InputError("not a text file", file=path, mend="write YAML in UTF-8") from None
    return parse(text, path)


def parse(text: str, file: object) -> list[Value]:
    """The documents of a text; `file` is its name in errors."""
    try:
        nodes = list(yaml.compose_all(text, yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or "not valid YAML").split())
        raise InputError(problem[:200], file=file, row=mark.line + 1 if mark else None) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid YAML: {error}", file=file) from None
    if not nodes:
        raise InputError("is empty", file=file)
    return [Value(node, file) for node in nodes]


class Value:
    """One value of a document.

    Attributes:
        file: as given to `parse`.
        key: path of keys that leads to it, such as `jobs.J1.runs`.
    """

    __slots__ = ("_node", "file", "key")

    def __init__(self, node: yaml.Node, file: object, key: str = "") -> None:
        self._node = node
        self.file = file
        self.key = key

    @property
    def line(self) -> int:
        """Line of the file, from 1."""
        return int(self._node.start_mark.line) + 1

    def fault(self, message: str, mend: str | None = None) -> InputError:
        """An error that names this place."""
        return InputError(message, file=self.file, row=self.line, column=self.key or None, mend=mend)

    # -- shapes -----------------------------------------------------------------------------

    @property
    def is_map(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self._node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    @property
    def empty(self) -> bool:
        """Whether nothing was written."""
        return isinstance(self._node, yaml.ScalarNode) and self._node.tag.endswith(":null")

    def items(self) -> list[tuple[str, Value]]:
        """(key, value) of a mapping, in the order of the file."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.fault("expected keys with values", "KEY: VALUE")
        found: dict[str, Value] = {}
        for key, value in self._node.value:
            name = Value(key, self.file, self.key).text("a key")
            place = Value(value, self.file, f"{self.key}.{name}" if self.key else name)
            if name in found:
                raise Value(key, self.file, place.key).fault(f"key {shown(name)} stands twice")
            found[name] = place
        return list(found.items())

    def entries(self) -> list[Value]:
        """Entries of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.fault("expected a list", "[ENTRY, ENTRY]")
        return [
            Value(node, self.file, f"{self.key}[{number}]")
            for number, node in enumerate(self._node.value, start=1)
        ]

    # -- scalars ----------------------------------------------------------------------------

    def text(self, what: str = "a text") -> str:
        """Some text, as it was written."""
        if not isinstance(self._node, yaml.ScalarNode) or self.empty:
            raise self.fault(f"expected {what}")
        word = str(self._node.value)
        if not is_clean(word.replace("\n", " ").replace("\t", " ")):
            raise self.fault(f"{shown(word)} has a control character in it")
        return word

    def name(self) -> str:
        """A name: text of one line."""
        word = self.text("a name")
        if not word or not is_clean(word):
            raise self.fault(f"{shown(word)} is not a name")
        return word

    def names(self) -> tuple[str, ...]:
        """One name or a list of them."""
        return tuple(entry.name() for entry in self.entries()) if self.is_list else (self.name(),)

    def number(self) -> float:
        """A finite number."""
        return float(self._decimal(self.text("a number"), "a number"))

    def positive(self) -> float:
        """A number above 0, within reason."""
        number = self.number()
        if not 1e-6 <= number <= 1e6:
            raise self.fault(f"{number:g} is out of range", "1e-6 to 1e6")
        return number

    def whole(self, low: int = -LARGEST, high: int = LARGEST) -> int:
        """A whole number within bounds."""
        word = self.text("a whole number")
        number = self._decimal(word, "a whole number")
        if number != int(number):
            raise self.fault(f"{shown(word)} is not a whole number")
        if not low <= number <= high:
            raise self.fault(f"{word} is out of range", f"{low} to {high}")
        return int(number)

    def count(self) -> int:
        """A whole number of at least 1."""
        return self.whole(1, 100_000)

    def seconds(self) -> int:
        """A length of time or an instant, in ns: seconds, or with a unit (`15m`, `1.5h`)."""
        return self.to_seconds(self.text("a time"))

    def to_seconds(self, word: str) -> int:
        """`word`, which stands here, as a time in ns."""
        unit = UNITS.get(word[-1:], 1)
        digits = word[:-1] if word[-1:] in UNITS else word
        number = self._decimal(digits, "a time", "seconds, or with a unit: 90, 15m, 1.5h, 2d", word) * unit
        if not 0 <= number <= Decimal(LONGEST_S):
            raise self.fault(f"{word} is out of range", f"0 to {LONGEST_S:g} seconds")
        return round(number * SECOND)

    def gpus(self) -> int:
        """A number of GPUs, in milli-GPUs."""
        return self.to_gpus(self.text("a number of GPUs"))

    def to_gpus(self, word: str) -> int:
        """`word`, which stands here, as a number of GPUs in milli-GPUs."""
        milli = self._decimal(word, "a number of GPUs") * GPU
        if not 0 <= milli <= LARGEST:
            raise self.fault(f"{word} GPUs are out of range")
        if milli != int(milli):
            raise self.fault(f"{word} GPUs", "a thousandth of a GPU is the smallest part")
        return int(milli)

    def times(self) -> tuple[int, int]:
        """`P x G` as (P, milli-GPUs of G): so many pods or nodes, with so many GPUs each."""
        word = self.text("P x G")
        count, cross, gpus = word.partition("x")
        if not cross or not count.strip().isdecimal() or not 1 <= int(count) <= 100_000:
            raise self.fault(f"{shown(word)} is not of the form P x G", "for example 4 x 8")
        milli = self.to_gpus(gpus.strip())
        if not milli:
            raise self.fault("0 GPUs each", "for example 4 x 8")
        return int(count), milli

    def flag(self) -> bool:
        """True or false."""
        return self.choice(("true", "false")) == "true"

    def choice(self, words: Sequence[str]) -> str:
        """One of the words."""
        word = self.text()
        if word not in words:
            raise self.fault(f"{shown(word)} is unknown", nearest(word, words))
        return word

    def _decimal(self, digits: str, what: str, mend: str | None = None, word: str | None = None) -> Decimal:
        try:
            number = Decimal(digits)
        except InvalidOperation:
            number = Decimal("nan")
        if not number.is_finite():
            raise self.fault(f"{shown(digits if word is None else word)} is not {what}", mend)
        if abs(number) > Decimal("1e18"):
            raise self.fault(f"{shown(digits)} is out of range")
        return number
