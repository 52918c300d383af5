"""A cluster from a YAML file::

nodes:
  - count: 32          # node-0 … node-31
    gpus: 8
    type: V100
  - name: big
    gpus: 16
    type: A100
tenants:               # entitlement; 1 where nothing is said
  vision: 2
"""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as shown
from typing import Any

from trainmaster.model.cluster import MAX_NODES, Cluster, Node
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.text import is_clean

KEYS = ("nodes", "tenants")
NODE_KEYS = ("count", "name", "gpus", "type")
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6


def read_cluster(path: str | Path) -> tuple[Cluster, dict[str, float]]:
    """The cluster and the weights of its tenants.

    Raises:
        InputError: names the file, the line where that is known, and the key.
    """
    document = _parse(Path(path))
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise InputError(
            "expected a list of nodes", file=path, column="nodes", mend="nodes: [{count: 4, gpus: 8}]"
        )
    _check_keys(document, KEYS, None, path)
    nodes: list[Node] = []
    for number, entry in enumerate(document["nodes"], start=1):
        nodes += _nodes(entry, number, len(nodes), path)
    try:
        cluster = Cluster(tuple(nodes))
    except InputError as error:
        raise InputError(error.message, file=path, column="nodes", mend=error.mend) from None
    return cluster, _weights(document.get("tenants"), path)


def _parse(path: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice, where PyYAML would take the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        problem = f"key {shown(key.value)} stands twice"
                        raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except UnicodeDecodeError:
        raise InputError("not a text file", file=path, mend="write YAML in UTF-8") from None
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise InputError(_line(problem), file=path, row=mark.line + 1 if mark else None) from None
    # PyYAML leaves faults of tagged values ("!!int x", a month 13) as whatever Python raised.
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"not valid YAML: {_line(error)}", file=path) from None


def _line(message: object) -> str:
    return " ".join(str(message).split())[:200]


def _check_keys(found: dict[Any, Any], known: tuple[str, ...], where: str | None, path: str | Path) -> None:
    for key in found:
        if key not in known:
            raise InputError(
                f"unknown key {shown(key)}", file=path, column=where, mend=nearest(shown(key), known)
            )


def _nodes(entry: object, number: int, first: int, path: str | Path) -> list[Node]:
    where = f"nodes[{number}]"
    if not isinstance(entry, dict):
        raise InputError(f"{shown(entry)} is not a node", file=path, column=where, mend="{count: 4, gpus: 8}")
    _check_keys(entry, NODE_KEYS, where, path)
    count = _whole(entry.get("count", 1), "count", where, path)
    gpus = _whole(entry.get("gpus"), "gpus", where, path)
    kind = "" if entry.get("type") is None else _text(entry["type"], "type", f"{where}.type", path)
    if first + count > MAX_NODES:
        raise InputError(f"over {MAX_NODES} nodes", file=path, column=f"{where}.count", mend="give fewer")
    if "name" not in entry:
        return [Node(f"node-{index}", gpus, kind) for index in range(first, first + count)]
    name = _text(entry["name"], "name", f"{where}.name", path)
    if not name:
        raise InputError("name is empty", file=path, column=f"{where}.name", mend="leave it out")
    if count == 1:
        return [Node(name, gpus, kind)]
    return [Node(f"{name}-{index}", gpus, kind) for index in range(count)]


def _whole(value: object, key: str, where: str, path: str | Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NODES:
        message = f"{key} is {shown(value)}, not a whole number >= 1"
        mend = f"at most {MAX_NODES}" if isinstance(value, int) and value > MAX_NODES else None
        raise InputError(message, file=path, column=f"{where}.{key}", mend=mend)
    return value


def _text(value: object, what: str, column: str, path: str | Path) -> str:
    """A name as it was written: YAML makes numbers and truth values of some names."""
    if not isinstance(value, str):
        mend = "write it in quotes" if isinstance(value, int | float) else "give one name"
        raise InputError(f"{what} is {shown(value)}, not text", file=path, column=column, mend=mend)
    if not is_clean(value):
        raise InputError(f"{what} {shown(value)} has a control character in it", file=path, column=column)
    return value


def _weights(tenants: object, path: str | Path) -> dict[str, float]:
    if tenants is None:
        return {}
    if not isinstance(tenants, dict):
        raise InputError(
            "expected tenants with weights", file=path, column="tenants", mend="tenants: {vision: 2}"
        )
    weights: dict[str, float] = {}
    for name, weight in tenants.items():
        name = _text(name, "a tenant's name", "tenants", path)
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            message = f"weight {shown(weight)} is not a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
            raise InputError(message, file=path, column=f"tenants.{name}")
        weights[name] = float(weight)
    return weights
