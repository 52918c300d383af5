"""Documents checked against a JSON Schema: the part of it that our files need.

The schema that editors complete and check a file with is the one that it is read by.
A title says in words what is expected, and the first example shows it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from math import inf
from reprlib import repr as shown
from typing import Any, Final

import yaml

from trainmaster.model.errors import nearest
from trainmaster.model.text import is_clean
from trainmaster.sim.yaml_file import Document, Key

Schema = Mapping[str, Any]

KEYWORDS: Final = (
    ("type", "enum", "minimum", "maximum", "minLength", "items", "minItems", "uniqueItems", "$ref"),
    ("properties", "required", "minProperties", "propertyNames", "additionalProperties"),
)
"""What is checked."""

ANNOTATIONS: Final = ("$schema", "$defs", "title", "description", "default", "examples")
"""What is only read, by people and editors."""

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def check(document: Document, schema: Schema) -> None:
    """Check a document; one that is empty counts as one without any keys.

    Raises:
        InputError: the first value at fault, with file, line, key and the mend.
    """
    _Check(document, schema).value({} if document.value is None else document.value, schema, ())


class _Check:
    def __init__(self, document: Document, root: Schema) -> None:
        self._fault = document.fault
        self._root = root

    def value(self, value: Any, schema: Schema, key: Key, subject: str = "") -> None:
        if "$ref" in schema:
            schema = {**_resolve(self._root, schema["$ref"]), **schema}
        if not subject and key and isinstance(key[-1], str):
            subject = key[-1]
        self._type(value, schema, key, subject)
        if isinstance(value, dict):
            self._object(value, schema, key)
        elif isinstance(value, list):
            self._array(value, schema, key)
        elif isinstance(value, str):
            self._text(value, schema, key, subject or "the text")

    def _type(self, value: Any, schema: Schema, key: Key, subject: str) -> None:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if any(_is_a(value, kind) for kind in kinds) and _in_range(value, schema):
            return
        message = f"{shown(value)} is not {_expected(schema, kinds)}"
        if subject:
            message = f"{subject} is {shown(value)}, not {_expected(schema, kinds)}"
        raise self._fault(message, key, _mend(value, schema, kinds, key))

    def _object(self, value: dict[Any, Any], schema: Schema, key: Key) -> None:
        known: Schema = schema.get("properties", {})
        others = schema.get("additionalProperties", False)
        if len(value) < schema.get("minProperties", 0):
            raise self._fault(f"{key[-1]} is empty", key, _example(schema, key))
        for name in value:
            if name in known:
                continue
            if others is False:
                raise self._fault(f"unknown key {shown(name)}", _below(key, name), nearest(str(name), known))
            if "propertyNames" in schema:
                naming = schema["propertyNames"]
                self.value(name, naming, _below(key, name), naming["title"])
        for name in schema.get("required", ()):
            if name not in value:
                where = (*key, name)
                raise self._fault(f"{name} is missing", where, _example(known[name], where))
        for name, entry in value.items():
            self.value(entry, known.get(name, others), (*key, name))

    def _array(self, value: list[Any], schema: Schema, key: Key) -> None:
        if len(value) < schema.get("minItems", 0):
            raise self._fault(f"{key[-1]} is empty", key, _example(schema, key))
        for place, entry in enumerate(value):
            self.value(entry, schema["items"], (*key, place))
        if schema.get("uniqueItems") and len(set(value)) < len(value):
            place = next(at for at, entry in enumerate(value) if entry in value[:at])
            raise self._fault(f"{shown(value[place])} stands twice", (*key, place))

    def _text(self, value: str, schema: Schema, key: Key, subject: str) -> None:
        if not is_clean(value):
            raise self._fault(f"{subject} {shown(value)} has a control character in it", key)
        if len(value) < schema.get("minLength", 0):
            raise self._fault(f"{subject} is empty", key, "leave it out, or give a name")
        if value not in schema.get("enum", [value]):
            raise self._fault(f"{subject} is {shown(value)}", key, nearest(value, schema["enum"]))


def _resolve(root: Schema, reference: str) -> Schema:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found  # type: ignore[no-any-return]


def _is_a(value: object, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and not isinstance(value, bool)


def _in_range(value: object, schema: Schema) -> bool:
    if not isinstance(value, int | float):
        return True
    # NaN is in no range.
    return bool(schema.get("minimum", -inf) <= value <= schema.get("maximum", inf))


def _expected(schema: Schema, kinds: list[str]) -> str:
    """What is expected, in words."""
    if "object" in kinds or "array" in kinds:
        return str(schema["title"])
    low, high = schema.get("minimum"), schema.get("maximum")
    span = f" from {low} to {high}" if low is not None and high is not None else ""
    return {"integer": "a whole number", "number": "a number", "string": "text"}[kinds[0]] + span


def _mend(value: object, schema: Schema, kinds: list[str], key: Key) -> str | None:
    example = _example(schema, key)
    if example is not None:
        return example
    if value is None:
        return "give it a value, or leave the key out"
    if "string" in kinds:
        quotable = isinstance(value, bool | int | float | datetime.date)
        return "write it in quotes" if quotable else "give one name"
    return "write a plain number, such as 2" if isinstance(value, str) else None


def _example(schema: Schema, key: Key) -> str | None:
    """The first example, as YAML in one line, under its own key."""
    if "examples" not in schema:
        return None
    example = schema["examples"][0]
    if key and isinstance(key[-1], str):
        example = {key[-1]: example}
    text = yaml.safe_dump(example, default_flow_style=True, sort_keys=False, width=1000).strip()
    return f"for example {text[1:-1] if key and isinstance(key[-1], str) else text}"


def _below(key: Key, name: object) -> Key:
    return (*key, name if isinstance(name, str) else shown(name))
