"""A profile file opened, unpacked and parsed; its parts know where they stand."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainmaster.model.errors import InputError, nearest

_MOST: Final = 1_000_000
"""Largest number of GPUs or nodes that is taken for one."""

_SLOWEST: Final = 1e-9
_FASTEST: Final = 1e9
"""Slowest and fastest speed that is taken for one, besides 0."""


@dataclass(frozen=True, slots=True)
class Item:
    """A value of the document with the keys that lead to it.

    Each method returns the value as what it should be, or raises an `InputError` that names
    file and key.
    """

    value: object
    file: str
    key: str = ""

    def fault(self, message: str, mend: str | None = None) -> InputError:
        """The error that says what is wrong with this value."""
        return InputError(message, file=self.file, column=self.key or None, mend=mend)

    def items(self) -> Iterator[tuple[Item, Item]]:
        """Keys and values of a mapping that has at least one; a key's own key is the path to its value."""
        if not isinstance(self.value, dict):
            raise self.fault(f"{self._shown()} where keys with values are expected")
        if not self.value:
            raise self.fault("is empty", "give at least one entry")
        seen = set()
        for key, value in self.value.items():
            # YAML reads 4: as a number, JSON has only texts.
            name = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
            if not isinstance(name, str):
                raise self.fault(f"{ascii(key)[:60]} is no key", "put it in quotes")
            if name in seen:
                raise self.fault(f"{ascii(name)[:60]} stands twice", "keep one")
            seen.add(name)
            shown = name if name.isprintable() and 0 < len(name) <= 60 else ascii(name)[:60]
            path = f"{self.key}.{shown}" if self.key else shown
            yield Item(name, self.file, path), Item(value, self.file, path)

    def mapping(self) -> dict[str, Item]:
        """A mapping that has at least one key."""
        return {str(key.value): item for key, item in self.items()}

    def fields(self, known: tuple[str, ...]) -> dict[str, Item]:
        """A mapping with some of the known keys and no others."""
        found = self.mapping()
        for name, item in found.items():
            if name not in known:
                raise item.fault("is no key of the format", nearest(name, known))
        return found

    def entries(self) -> Iterator[Item]:
        """Elements of a list that has at least one."""
        if not isinstance(self.value, list):
            raise self.fault(f"{self._shown()} where a list is expected")
        if not self.value:
            raise self.fault("is empty", "give at least one entry")
        for index, value in enumerate(self.value):
            yield Item(value, self.file, f"{self.key}[{index}]")

    def text(self) -> str:
        """A text that is not empty and has no control characters."""
        if not isinstance(self.value, str):
            raise self.fault(f"{self._shown()} where a text is expected", "put it in quotes")
        if not self.value or not self.value.isprintable():
            raise self.fault(f"{ascii(self.value)[:60]} is empty or has characters that can't be shown")
        return self.value

    def whole(self) -> int:
        """A whole number from 1; as a key it may be written as a text."""
        value = self.value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
            raise self.fault(f"{self._shown()} is not a whole number from 1 to {_MOST}")
        return value

    def speed(self) -> float:
        """A speed: 0, or a number from 1e-9 to 1e9."""
        value = self.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if _SLOWEST <= value <= _FASTEST:
                return float(value)
            if value == 0:
                return 0.0
        raise self.fault(f"{self._shown()} is not a speed", "0, or a number from 1e-9 to 1e9")

    def speeds(self) -> dict[int, dict[int, float]]:
        """A mapping from GPUs to nodes to speed."""
        found: dict[int, dict[int, float]] = {}
        for gpus, by_nodes in self.numbered():
            found[gpus] = {}
            for nodes, speed in by_nodes.numbered():
                if nodes > gpus:
                    raise speed.fault(f"{gpus} GPUs can't be on {nodes} nodes")
                found[gpus][nodes] = speed.speed()
        return found

    def numbered(self) -> Iterator[tuple[int, Item]]:
        """A mapping whose keys are whole numbers."""
        seen = set()
        for key, item in self.items():
            number = key.whole()
            if number in seen:
                raise item.fault(f"{number} stands twice", "keep one")
            seen.add(number)
            yield number, item

    def _shown(self) -> str:
        """The value in a few words, on one line."""
        value = self.value
        if value is None or isinstance(value, dict | list | bool):
            return {dict: "keys with values", list: "a list", bool: "true or false"}.get(
                type(value), "nothing"
            )
        if isinstance(value, int) and abs(value) > 10**18:
            return "so large a number"
        return ascii(value)[:60]


class Source:
    """The file that a reader reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._document: Item | None = None

    @property
    def document(self) -> Item:
        """The parsed file; it is opened when first asked for.

        Raises:
            InputError: the file can't be read, or is neither JSON nor YAML.
        """
        if self._document is None:
            text = _text(self.path)
            if not text.strip():
                raise InputError("is empty", file=self.path, mend="give a profile")
            parse = _yaml if _is_yaml(self.path, text) else _json
            self._document = Item(parse(text, self.path), str(self.path))
        return self._document


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError("the gzip data are cut off or damaged", file=path, mend="fetch it again") from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", file=path, mend="give a JSON or YAML file") from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def _is_yaml(path: Path, text: str) -> bool:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    return suffix in (".yaml", ".yml") or not text.lstrip().startswith(("{", "["))


class _DuplicateKeyError(ValueError):
    """A key stands twice in a mapping."""


def _json(text: str, path: Path) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _DuplicateKeyError as error:
        raise InputError(str(error), file=path, mend="keep one") from error
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, row=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON that can be read: {error}", file=path) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKeyError(f"key {_first_twice(name for name, _ in pairs)} stands twice")
    return found


def _first_twice(names: Iterable[str]) -> str:
    """The first name that stands twice, for display; "" when none does."""
    seen = set()
    for name in names:
        if name in seen:
            return ascii(name)[:60]
        seen.add(name)
    return ""


def _yaml(text: str, path: Path) -> object:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice, where PyYAML would take the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            names = (key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            if twice := _first_twice(names):
                raise yaml.constructor.ConstructorError(
                    problem=f"key {twice} stands twice", problem_mark=node.start_mark
                )
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        row = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"is not YAML: {_line(error.problem)}", file=path, row=row) from error
    # PyYAML leaves faults of tagged values ("!!int x", a month 13) as whatever Python raised.
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InputError(f"is not YAML: {_line(error)}", file=path) from error


def _line(message: object) -> str:
    return " ".join(str(message).split())[:200]
