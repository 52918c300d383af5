"""The cluster of a case: a line, a cluster file, or nodes and queues written as in one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.model.queues import Queue, QueueTree, Reclaim
from trainmaster.sim.cluster_file import read_cluster
from trainmaster.testing.scenario_keys import NODE, QUEUE, TREE
from trainmaster.testing.scenario_kinds import fields, needs
from trainmaster.testing.scenario_yaml import Value

LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6
"""Weights that tenants can have under policies that don't know queues."""


class ClusterOf:
    """Reads a cluster.

    Args:
        path: of the case; a cluster file is looked for beside it.
        wanted: where features that it needs are added.

    Attributes:
        weights: entitlement by tenant.
    """

    def __init__(self, path: Path, wanted: list[str]) -> None:
        self.weights: dict[str, float] = {}
        self._path = path
        self._wanted = wanted

    def cluster(self, value: Value, queues: Value | None, reclaim: Reclaim) -> Cluster:
        """All of it.

        Args:
            queues: the case's own, instead of those of a cluster file.
            reclaim: of queues that don't say.
        """
        found = self._nodes_of(value)
        return found if queues is None else replace(found, queues=self._queues(queues, reclaim))

    def _nodes_of(self, value: Value) -> Cluster:
        if not (value.is_list or value.is_map) and value.text().endswith((".yaml", ".yml")):
            cluster, self.weights = read_cluster(self._path.parent / value.text())
            return cluster
        levels: tuple[str, ...] = ()
        place = value
        if value.is_map and "nodes" in dict(value.items()):
            found = fields(value, TREE)
            levels, place = found.get("levels", ()), found["nodes"]
        nodes: list[Node] = []
        for entry in place.entries() if place.is_list else [place]:
            nodes += self._nodes(entry, len(nodes))
        try:
            return Cluster(tuple(nodes), levels=levels)
        except InputError as error:
            raise value.fault(error.message, error.mend) from None

    def _nodes(self, entry: Value, first: int) -> list[Node]:
        if not entry.is_map:
            match = re.fullmatch(r"\s*(\d{1,5})\s*x\s*(\d{1,5})(?:\s+(\S+))?\s*", entry.text())
            if match is None or not (int(match[1]) and int(match[2])):
                mend = "4 x 8, 4 x 8 V100, or the path of a cluster file"
                raise entry.fault(f"{entry.text()!r} is no cluster", mend)
            node = Node("", int(match[2]), match[3] or "")
            return [replace(node, name=f"node-{first + index}") for index in range(int(match[1]))]
        found = fields(entry, NODE)
        labels = tuple(sorted(found.get("labels", {}).items()))
        node = Node("", found["gpus"], found.get("type", ""), labels, found.get("topology", ()))
        count, name = found.get("count", 1), found.get("name")
        if name is not None and count == 1:
            return [replace(node, name=name)]
        start, name = (first, "node") if name is None else (0, name)
        return [replace(node, name=f"{name}-{start + index}") for index in range(count)]

    def _queues(self, value: Value, reclaim: Reclaim) -> QueueTree:
        queues = []
        for name, entry in value.items():
            found = fields(entry, QUEUE)
            self._wanted += needs(found, QUEUE)
            found.pop("hold", None)
            weight = found.get("weight", 1.0)
            if LEAST_WEIGHT <= weight <= MOST_WEIGHT:
                self.weights[name] = weight
            else:
                self._wanted.append("quota")
            try:
                queues.append(Queue(name, **{"reclaim": reclaim, **found}))
            except InputError as error:
                raise entry.fault(error.message, error.mend) from None
        try:
            return QueueTree(tuple(queues))
        except InputError as error:
            raise value.fault(error.message, error.mend) from None
