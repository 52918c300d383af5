"""A cluster: named nodes with whole GPUs, and the tenants who share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from trainmaster.model.errors import InputError
from trainmaster.model.numbers import whole
from trainmaster.model.queues import QueueTree

MAX_NODES = 100_000
"""Nodes of a cluster, at most: far beyond real ones, and still quick to make."""

MAX_GPUS_PER_NODE = 100_000
"""GPUs of a node, at most, as in a cluster file."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine.

    Args:
        name: unique within the cluster.
        gpus: number of whole GPUs.
        gpu_type: type of all its GPUs; "" = the cluster does not tell types apart.
        labels: (key, value) pairs in order, each key once.
        topology: where it stands: a name for each of the cluster's levels. The same name below
            different places means different racks.

    Raises:
        InputError: labels out of order, or a key twice; or `gpus` is no whole number.
    """

    name: str
    gpus: int
    gpu_type: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    topology: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", whole(self.gpus, f"gpus of node {self.name}"))
        if any(one[0] >= other[0] for one, other in pairwise(self.labels)):
            raise InputError(
                f"labels of node {self.name} are out of order, or one stands twice",
                mend="sort them by key, each key once",
            )


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes in a fixed order (an index into `nodes` names a node everywhere inside).

    Args:
        nodes: at least one node, each with 1 to `MAX_GPUS_PER_NODE` GPUs, names unique.
        pooled: only the total number of GPUs counts; there is a single node, of any size.
        levels: names of the levels of the topology, from the widest to the rack, such as
            ("zone", "block", "rack"); empty = the nodes stand nowhere in particular.
        queues: who may hold how much of it; None = nobody is bound.

    Raises:
        InputError: no nodes, a node without GPUs or with too many, a name twice, or a node whose topology
            doesn't name one place for each level.

    >>> Cluster.homogeneous(nodes=2, gpus_per_node=8).gpus
    16
    """

    nodes: tuple[Node, ...]
    pooled: bool = False
    levels: tuple[str, ...] = ()
    queues: QueueTree | None = None
    names: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError("the cluster has no nodes", mend="give at least one node")
        names = {node.name: index for index, node in enumerate(self.nodes)}
        for node in self.nodes:
            if node.gpus < 1:
                raise InputError(
                    f"node {node.name} has {node.gpus} GPUs", mend="give each node at least 1 GPU"
                )
            if node.gpus > MAX_GPUS_PER_NODE and not self.pooled:
                raise InputError(
                    f"node {node.name} has {node.gpus} GPUs", mend=f"give at most {MAX_GPUS_PER_NODE}"
                )
            if len(node.topology) != len(self.levels):
                raise InputError(
                    f"node {node.name} names {len(node.topology)} places for {len(self.levels)} levels",
                    mend="give one for each level",
                )
        if len(set(self.levels)) < len(self.levels):
            raise InputError(f"a level of {', '.join(self.levels)} stands twice", mend="name each once")
        if len(names) < len(self.nodes):
            twice = next(node.name for index, node in enumerate(self.nodes) if names[node.name] != index)
            raise InputError(f"node name {twice!r} stands twice", mend="make node names unique")
        object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        nodes = f"{len(self.nodes):,} node{'' if len(self.nodes) == 1 else 's'}"
        return f"Cluster({nodes}, {self.gpus:,} GPUs{', pooled' if self.pooled else ''})"

    @classmethod
    def homogeneous(cls, nodes: int, gpus_per_node: int, gpu_type: str = "") -> Cluster:
        """`nodes` equal machines named node-0, node-1, …

        Raises:
            InputError: more than `MAX_NODES` of them, or more than `MAX_GPUS_PER_NODE` GPUs.
        """
        nodes, gpus = whole(nodes, "nodes"), whole(gpus_per_node, "gpus_per_node")
        if nodes > MAX_NODES:
            raise InputError(f"{nodes} nodes are too many", mend=f"at most {MAX_NODES}")
        return cls(tuple(Node(f"node-{index}", gpus, gpu_type) for index in range(nodes)))

    @property
    def gpus(self) -> int:
        """Whole GPUs in the cluster."""
        return sum(node.gpus for node in self.nodes)

    def as_pool(self) -> Cluster:
        """The same GPUs on one imaginary node, for the same queues: only their number counts."""
        return Cluster((Node("pool", self.gpus),), pooled=True, queues=self.queues)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who shares the cluster: a virtual cluster, a team, a project.

    Args:
        name: as in `Job.tenant`.
        weight: entitlement relative to the other tenants'; equal by default.
    """

    name: str
    weight: float = 1.0
