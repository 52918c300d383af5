"""Kinds of values in case files, and mappings with known keys: how they are read, and their schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from trainmaster.model.errors import nearest
from trainmaster.testing.scenario_features import known
from trainmaster.testing.scenario_model import GROUPS, PARTLY, RELATIONS, Bound
from trainmaster.testing.scenario_yaml import Value


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read, and how JSON Schema describes it."""

    read: Callable[[Value], Any]
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Args:
        name: as written.
        kind: of its value.
        help: its meaning, in one line.
        needs: the feature that its use needs; empty = none.
        required: whether it must be there.
        refers: what its names must be: jobs, nodes, queues or states, of the list (or of the
            keys of the mapping) and, behind a blank, of the mapping's values.
    """

    name: str
    kind: Kind
    help: str
    needs: str = ""
    required: bool = False
    refers: str = ""


Table = tuple[Key, ...]

Names = Mapping[str, Collection[str]]
"""What names there are: of jobs, nodes, queues and states."""


def fields(
    value: Value, table: Table, *, names: Names | None = None, inherited: Mapping[str, Value] | None = None
) -> dict[str, Any]:
    """The keys of a mapping, read.

    Args:
        names: what references must name; None = they aren't looked at.
        inherited: values of keys that the mapping doesn't name.

    Raises:
        InputError: an unknown key, a missing one, a value that isn't of its kind, or a name
            that nothing has.
    """
    keys = {key.name: key for key in table}
    found = {}
    for name, entry in {**(inherited or {}), **dict(value.items())}.items():
        if name not in keys:
            raise entry.fault(f"unknown key {name!r}", nearest(name, keys))
        found[name] = keys[name].kind.read(entry)
        # A single number instead of a mapping names nothing.
        if names is not None and keys[name].refers and (entry.is_map or keys[name].kind in (NAME, NAMES)):
            _check_names(entry, keys[name].refers.split(), names)
    for key in table:
        if key.required and key.name not in found:
            raise value.fault(f"{key.name} is missing", key.help)
    return found


def _check_names(value: Value, refers: Sequence[str], names: Names) -> None:
    """Refuse names that nothing has."""
    if value.is_map:
        for name, entry in value.items():
            _check_name(entry, name, refers[0], names)
            if len(refers) > 1:
                _check_names(entry, refers[1:], names)
    elif value.is_list:
        for entry in value.entries():
            _check_name(entry, entry.name(), refers[0], names)
    else:
        _check_name(value, value.name(), refers[0], names)


def _check_name(value: Value, name: str, what: str, names: Names) -> None:
    if name not in names[what]:
        raise value.fault(f"there is no {what.removesuffix('s')} {name!r}", nearest(name, names[what]))


def needs(found: Mapping[str, Any], table: Table) -> list[str]:
    """Features that the use of these keys needs."""
    return [key.needs for key in table if key.needs and key.name in found]


_SIGNS: Final = sorted(RELATIONS, key=len, reverse=True)

# -- kinds --------------------------------------------------------------------------------------


def _bound(convert: Callable[[Value, str], int]) -> Callable[[Value], Bound]:
    def read(value: Value) -> Bound:
        word = value.text("a number").strip()
        relation = next(
            (sign for sign in sorted(RELATIONS, key=len, reverse=True) if word.startswith(sign)), ""
        )
        return Bound(convert(value, word[len(relation) :].strip()), relation or "=")

    return read


def _count(value: Value, word: str) -> int:
    if not word.isdecimal() or len(word) > 9:
        raise value.fault(f"{word!r} is not a count")
    return int(word)


def mapping_of(kind: Kind) -> Kind:
    """A mapping whose keys are names of the user's."""
    return Kind(
        lambda value: {name: kind.read(entry) for name, entry in value.items()},
        {"type": "object", "additionalProperties": dict(kind.schema)},
    )


def list_of(kind: Kind) -> Kind:
    """A list, or a single entry."""
    return Kind(
        lambda value: tuple(map(kind.read, value.entries() if value.is_list else [value])),
        {"anyOf": [dict(kind.schema), {"type": "array", "items": dict(kind.schema)}]},
    )


def _files(value: Value) -> dict[str, str]:
    found = {}
    for name, entry in value.items():
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise entry.fault("lies outside the folder of the case", "give a plain name")
        found[name] = entry.text()
    return found


def one_or_mapping(kind: Kind) -> Kind:
    """One value for all, or a mapping by name."""
    by_name = mapping_of(kind)
    return Kind(
        lambda value: by_name.read(value) if value.is_map else kind.read(value),
        {"anyOf": [dict(kind.schema), dict(by_name.schema)]},
    )


def choice(*words: str) -> Kind:
    """One of some words."""
    return Kind(lambda value: value.choice(words), {"enum": list(words)})


def table_of(table: Table) -> Kind:
    """A mapping with the keys of a table."""
    return Kind(lambda value: fields(value, table), schema_of(table))


def schema_of(table: Table) -> dict[str, Any]:
    """JSON Schema of a mapping with these keys."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: {**key.kind.schema, "description": key.help} for key in table},
        "additionalProperties": False,
    }
    required = [key.name for key in table if key.required]
    return {**schema, "required": required} if required else schema


_NUMBER: Final = {"type": ["number", "string"]}
_WORD: Final = {"type": ["string", "number", "boolean"]}

TEXT = Kind(Value.text, {"type": "string"})
NAME = Kind(Value.name, _WORD)
NAMES = list_of(NAME)
WHOLE = Kind(Value.whole, {"type": "integer"})
COUNT = Kind(Value.count, {"type": "integer", "minimum": 1})
NUMBER = Kind(Value.number, {"type": "number"})
SPEED = Kind(Value.positive, {"type": "number", "exclusiveMinimum": 0})
TIME = Kind(Value.seconds, {**_NUMBER, "pattern": r"^[0-9.]+[smhd]?$"})
GPUS = Kind(Value.gpus, {"type": "number", "minimum": 0})
TIMES = Kind(Value.times, {"type": "string", "pattern": r"^\s*[0-9]+\s*x\s*[0-9.]+\s*$"})
FLAG = Kind(Value.flag, {"type": "boolean"})
TIME_BOUND = Kind(_bound(Value.to_seconds), _NUMBER)
GPU_BOUND = Kind(_bound(Value.to_gpus), _NUMBER)
COUNT_BOUND = Kind(_bound(_count), _NUMBER)
FILES = Kind(_files, mapping_of(TEXT).schema)
FEATURES = list_of(choice(*known()))
STATE = choice(*GROUPS, PARTLY)
RECLAIM = choice("quota", "fair-share", "none")
ANYTHING = Kind(lambda value: value, {})
"""Read by the loader itself."""
