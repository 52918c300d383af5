"""A JSON document whose every access names its place when something is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmaster.model.errors import InputError


class Node:
    """A value inside a JSON document and the path that leads to it.

    A key that an object lacks reads as null, so that files may grow and shrink keys;
    the typed readers (`text`, `whole`, `number`) say what they expected.

    >>> Node({"runs": [{"jobs": 3}]}, "")["runs"].at(0)["jobs"].whole()
    3
    """

    __slots__ = ("file", "mend", "place", "value")

    def __init__(self, value: Any, place: str, file: object = None, mend: str | None = None) -> None:
        self.value, self.place, self.file, self.mend = value, place, file, mend

    def error(self, message: str) -> InputError:
        return InputError(message, file=self.file, column=self.place or None, mend=self.mend)

    def _child(self, value: Any, step: str) -> Node:
        return Node(value, f"{self.place}{step}".removeprefix("."), self.file, self.mend)

    def __getitem__(self, key: str) -> Node:
        if not isinstance(self.value, Mapping):
            raise self.error("must be an object")
        return self._child(self.value.get(key), f".{key}")

    def names(self) -> list[str]:
        if not isinstance(self.value, Mapping):
            raise self.error("must be an object")
        return list(self.value)

    def at(self, index: int) -> Node:
        return self._child(self.value[index], f"[{index}]")

    def items(self) -> Iterator[Node]:
        if not isinstance(self.value, list):
            raise self.error("must be a list")
        return (self.at(index) for index in range(len(self.value)))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("must be a text")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error("must be a number")
        return float(self.value)

    def whole(self) -> int:
        if not self.number().is_integer():
            raise self.error("must be a whole number")
        return int(self.value)

    def optional_text(self) -> str | None:
        return None if self.value is None else self.text()

    def optional_number(self) -> float | None:
        return None if self.value is None else self.number()

    def optional_whole(self) -> int | None:
        return None if self.value is None else self.whole()


def parse_json(path: Path, mend: str) -> Node:
    """The document in a file.

    Raises:
        InputError: the file is missing, unreadable or not strict JSON.
    """
    try:
        return Node(json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse), "", path, mend)
    except FileNotFoundError as error:
        raise InputError("is missing", file=path, mend=mend) from error
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path, mend=mend) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", file=path, mend=mend) from error
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError among them
        raise InputError(f"is not JSON: {error}", file=path, mend=mend) from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")
