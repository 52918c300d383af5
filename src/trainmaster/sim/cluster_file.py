"""A cluster from a YAML file::

levels: [zone, rack]
nodes:
  - count: 32          # node-0 … node-31
    gpus: 8
    type: V100
    topology: [east, r1]
  - name: big
    gpus: 16
    type: A100
    labels: {disk: nvme}
    topology: [east, r2]
tenants:               # entitlement; 1 where nothing is said
  vision: 2
queues:
  research: {limit: 128}
  vision: {parent: research, guaranteed: 64, reclaim: fair-share}

`cluster.schema.json`, beside this file, says what each key means and holds. Editors can
use it, and so does this reader.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from trainmaster.model.cluster import MAX_NODES, Cluster, Node
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import GPU
from trainmaster.sim.schema import check
from trainmaster.sim.yaml_file import Document, Key

SCHEMA: Final = Path(__file__).with_name("cluster.schema.json")
"""JSON Schema of a cluster file."""


class ClusterFile(NamedTuple):
    """What a cluster file says.

    Args:
        cluster: its nodes and queues.
        weights: entitlement by tenant, for the policy `drf`.
    """

    cluster: Cluster
    weights: dict[str, float]

    @property
    def queues(self) -> QueueTree | None:
        """Who may hold how much; None = the file names no queues, and nobody is bound."""
        return self.cluster.queues


def read_cluster_file(path: str | Path) -> ClusterFile:
    """Everything that a cluster file says.

    Raises:
        InputError: names the file, the line, the key and the mend.
    """
    document = Document(path)
    check(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    found = document.value
    weights = {name: float(weight) for name, weight in (found.get("tenants") or {}).items()}
    return ClusterFile(_cluster(document, found), weights)


def read_cluster(path: str | Path) -> tuple[Cluster, dict[str, float]]:
    """The cluster, with its queues, and the weights of its tenants.

    Raises:
        InputError: names the file, the line, the key and the mend.
    """
    cluster, weights = read_cluster_file(path)
    return cluster, weights


def _cluster(document: Document, found: dict[str, Any]) -> Cluster:
    levels = tuple(found.get("levels", ()))
    nodes: list[Node] = []
    names: set[str] = set()
    for number, entry in enumerate(found["nodes"]):
        key = ("nodes", number)
        count = entry.get("count", 1)
        if len(nodes) + count > MAX_NODES:
            raise document.fault(f"over {MAX_NODES} nodes", (*key, "count"), "give fewer")
        _check_place(document, entry, levels, key)
        for name in _names(entry, count, len(nodes)):
            if name in names:
                where = (*key, "name") if "name" in entry else key
                raise document.fault(f"node name {name!r} stands twice", where, "make node names unique")
            names.add(name)
            nodes.append(_node(name, entry))
    queues = _queues(document, found["queues"]) if "queues" in found else None
    return Cluster(tuple(nodes), levels=levels, queues=queues)


def _names(entry: dict[str, Any], count: int, first: int) -> list[str]:
    if "name" not in entry:
        return [f"node-{number}" for number in range(first, first + count)]
    name = entry["name"]
    return [name] if count == 1 else [f"{name}-{number}" for number in range(count)]


def _node(name: str, entry: dict[str, Any]) -> Node:
    labels = tuple(sorted(entry.get("labels", {}).items()))
    return Node(name, entry["gpus"], entry.get("type") or "", labels, tuple(entry.get("topology", ())))


def _check_place(document: Document, entry: dict[str, Any], levels: tuple[str, ...], key: Key) -> None:
    place = entry.get("topology", [])
    if len(place) == len(levels):
        return
    where = (*key, "topology")
    if not levels:
        raise document.fault("the file names no levels", where, "name them first: levels: [zone, rack]")
    if not place:
        raise document.fault("topology is missing", where, f"give a name for each of {', '.join(levels)}")
    raise document.fault(
        f"{len(place)} names for {len(levels)} levels", where, f"give one for each of {', '.join(levels)}"
    )


def _queues(document: Document, entries: dict[str, dict[str, Any] | None]) -> QueueTree:
    queues = []
    for name, entry in entries.items():
        key = ("queues", name)
        said = entry or {}
        parent = said.get("parent")
        if parent is not None and parent not in entries:
            others = [other for other in entries if other != name]
            mend = nearest(parent, others) if others else "leave parent out"
            raise document.fault(f"there is no queue {parent!r}", (*key, "parent"), mend)
        settings: dict[str, Any] = {
            what: said[what] for what in ("weight", "priority", "reclaim") if what in said
        }
        for what in ("guaranteed", "limit"):
            if what in said:
                settings[what] = _milli(document, said[what], (*key, what))
        try:
            queues.append(Queue(name, parent, **settings))
        except InputError as error:
            beyond = settings.get("guaranteed", 0) > settings.get("limit", inf)
            where = (*key, "guaranteed" if beyond else "weight")
            raise document.fault(error.message, where, error.mend) from None
    try:
        return _with_defaults(QueueTree(tuple(queues)), entries)
    except InputError as error:
        raise document.fault(error.message, ("queues",), error.mend) from None


def _milli(document: Document, gpus: float, key: Key) -> int:
    # As it was written: 0.3 is three tenths, not the binary fraction next to it.
    milli = Fraction(str(gpus)) * GPU
    if milli.denominator != 1:
        raise document.fault(f"{key[-1]} is {gpus}", key, "a thousandth of a GPU is the smallest part")
    return int(milli)


def _with_defaults(tree: QueueTree, entries: dict[str, dict[str, Any] | None]) -> QueueTree:
    """Settings that follow from those of other queues where the file says nothing: a group
    guarantees what is guaranteed below it, and a queue reclaims as its parent does."""
    complete = {queue.name: queue for queue in tree.queues}
    by_depth = sorted(tree.queues, key=lambda queue: len(tree.path(queue.name)))
    for queue in by_depth:
        if "reclaim" not in (entries[queue.name] or {}) and queue.parent is not None:
            reclaim = complete[queue.parent].reclaim
            complete[queue.name] = replace(complete[queue.name], reclaim=reclaim)
    for queue in reversed(by_depth):
        inside = tree.children(queue.name)
        if inside and "guaranteed" not in (entries[queue.name] or {}):
            total = sum(complete[child.name].guaranteed for child in inside)
            guaranteed = total if queue.limit is None else min(total, queue.limit)
            complete[queue.name] = replace(complete[queue.name], guaranteed=guaranteed)
    return QueueTree(tuple(complete.values()))
