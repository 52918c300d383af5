"""The JSON Schema for editors, and the docs: both know every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmaster.testing import scenario_keys
from trainmaster.testing.scenario import case_files
from trainmaster.testing.scenario_features import BY_ENGINE, BY_POLICY

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

GOOD = """\
title: T
cluster: 2 x 4
jobs:
  a: {runs: 10, gpus: 2}
  b: {runs: 15m, count: 3, every: 5, pods: 2 x 1}
"""


def test_the_schema_is_that_of_the_tables() -> None:
    """Make it again with `python -m trainmaster.testing.scenario_keys`."""
    file = Path(scenario_keys.__file__).with_name("scenario.schema.json")
    assert file.read_text(encoding="utf-8") == scenario_keys.schema_text()


def faults(value: object, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    """What a document has that a schema doesn't allow: the keywords that ours uses."""
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for word, enough in (("anyOf", 1), ("oneOf", 1)):
        found = [list(faults(value, option, root)) for option in schema.get(word, ())]
        if found and sum(not each for each in found) < enough:
            yield min(found, key=len)[0]
    kinds = schema.get("type")
    types = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if kinds and not any(
        isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        yield f"{value!r} is no {kinds}"
    if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        yield f"{value!r} is not allowed"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{value!r} is not like {schema['pattern']}"
    if isinstance(value, dict):
        yield from (f"{key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, entry in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if below is False:
                yield f"{key} is not allowed"
            else:
                yield from (f"{key}: {fault}" for fault in faults(entry, below, root))
    if isinstance(value, list) and "items" in schema:
        for entry in value:
            yield from faults(entry, schema["items"], root)


@pytest.mark.parametrize("path", case_files([FOLDER]), ids=lambda path: path.stem)
def test_every_case_satisfies_the_schema(path: Path) -> None:
    schema = json.loads(scenario_keys.schema_text())
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        assert list(faults(document, schema, schema)) == []


@pytest.mark.parametrize(
    "change", [{"polices": "fifo"}, {"jobs": {"a": {"rums": 1}}}, {"kind": "x"}, {"round": []}]
)
def test_the_schema_refuses_what_the_loader_refuses(change: dict[str, object]) -> None:
    schema = json.loads(scenario_keys.schema_text())
    good = yaml.safe_load(GOOD)
    assert list(faults(good, schema, schema)) == []
    assert list(faults({**good, **change}, schema, schema))


def test_the_docs_name_every_key() -> None:
    page = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    tables = [*scenario_keys.KINDS.values(), scenario_keys.JOB, scenario_keys.STEP, scenario_keys.QUEUE]
    tables += [
        scenario_keys.MOMENT,
        scenario_keys.FINALLY,
        scenario_keys.READER_EXPECT,
        scenario_keys.PROCESS_EXPECT,
    ]
    missing = {key.name for table in tables for key in table if f"`{key.name}`" not in page}
    assert not missing
    assert {feature for feature in (*BY_ENGINE, *BY_POLICY) if f"`{feature}`" not in page} == set()
