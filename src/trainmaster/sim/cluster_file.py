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
from typing import Any

from trainmaster.model.cluster import MAX_NODES, Cluster, Node
from trainmaster.model.errors import InputError, nearest

NODE_KEYS = ("count", "name", "gpus", "type")


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
    for key in document:
        if key not in ("nodes", "tenants"):
            hint = nearest(str(key), ("nodes", "tenants"))
            raise InputError(f"unknown key {key!r}", file=path, mend=hint)
    nodes: list[Node] = []
    for number, entry in enumerate(document["nodes"], start=1):
        nodes += _nodes(entry, number, len(nodes), path)
    try:
        cluster = Cluster(tuple(nodes))
    except InputError as error:
        raise InputError(error.message, file=path, column="nodes", mend=error.mend) from None
    return cluster, _weights(document.get("tenants") or {}, path)


def _parse(path: Path) -> Any:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except UnicodeDecodeError:
        raise InputError("not a text file", file=path, mend="write YAML in UTF-8") from None
    try:
        return yaml.safe_load(text)
    except (ValueError, RecursionError) as error:  # a date that is none, too many brackets
        raise InputError(f"not valid YAML: {error}", file=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise InputError(str(problem), file=path, row=mark.line + 1 if mark else None) from None


def _nodes(entry: object, number: int, first: int, path: str | Path) -> list[Node]:
    where = f"nodes[{number}]"
    if not isinstance(entry, dict):
        raise InputError(f"{entry!r} is not a node", file=path, column=where, mend="{count: 4, gpus: 8}")
    for key in entry:
        if key not in NODE_KEYS:
            raise InputError(
                f"unknown key {key!r}", file=path, column=where, mend=nearest(str(key), NODE_KEYS)
            )
    count = _whole(entry.get("count", 1), "count", where, path)
    gpus = _whole(entry.get("gpus"), "gpus", where, path)
    kind = str(entry.get("type", "") or "")
    name = entry.get("name")
    if name is not None and count == 1:
        return [Node(str(name), gpus, kind)]
    prefix = "node" if name is None else str(name)
    start = first if name is None else 0
    return [Node(f"{prefix}-{index}", gpus, kind) for index in range(start, start + count)]


def _whole(value: object, key: str, where: str, path: str | Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NODES:
        raise InputError(f"{key} is {value!r}, not a whole number >= 1", file=path, column=f"{where}.{key}")
    return value


def _weights(tenants: object, path: str | Path) -> dict[str, float]:
    if not isinstance(tenants, dict):
        raise InputError(
            "expected tenants with weights", file=path, column="tenants", mend="tenants: {vision: 2}"
        )
    for name, weight in tenants.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            raise InputError(f"weight {weight!r} is not a number > 0", file=path, column=f"tenants.{name}")
    return {str(name): float(weight) for name, weight in tenants.items()}
