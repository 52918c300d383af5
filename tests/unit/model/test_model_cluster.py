"""Clusters with labels and a topology: what is refused, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from trainmaster.model.cluster import MAX_GPUS_PER_NODE, Cluster, Node
from trainmaster.model.errors import InputError


def test_a_node_without_places_and_labels_is_as_before() -> None:
    node = Node("a", 8, "V100")
    assert (node.labels, node.topology) == ((), ())
    assert Cluster((node,)).levels == Cluster.homogeneous(2, 8).levels == ()
    assert Cluster((node,), True).pooled


def test_equal_names_at_different_places_are_different_racks() -> None:
    nodes = Node("a", 8, topology=("east", "r1")), Node("b", 8, topology=("west", "r1"))
    cluster = Cluster(nodes, levels=("zone", "rack"))
    assert cluster.nodes[0].topology != cluster.nodes[1].topology


def test_a_pool_has_no_places() -> None:
    cluster = Cluster((Node("a", 8, topology=("r1",)), Node("b", 4, topology=("r2",))), levels=("rack",))
    assert cluster.as_pool() == Cluster((Node("pool", 12),), pooled=True)


@pytest.mark.parametrize("topology", [(), ("r1",), ("east", "b", "r1")])
def test_a_node_names_one_place_for_each_level(topology: tuple[str, ...]) -> None:
    nodes = Node("a", 8, topology=("east", "r1")), Node("b", 8, topology=topology)
    with pytest.raises(InputError) as caught:
        Cluster(nodes, levels=("zone", "rack"))
    assert str(caught.value) == f"node b names {len(topology)} places for 2 levels (give one for each level)"


def test_places_without_levels() -> None:
    with pytest.raises(InputError, match="node a names 1 places for 0 levels"):
        Cluster((Node("a", 8, topology=("r1",)),))


def test_a_level_stands_once() -> None:
    with pytest.raises(InputError, match="a level of rack, rack stands twice"):
        Cluster((Node("a", 8, topology=("r1", "r1")),), levels=("rack", "rack"))


@pytest.mark.parametrize("labels", [(("b", "1"), ("a", "1")), (("a", "1"), ("a", "2"))])
def test_labels_are_sorted_each_key_once(labels: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(InputError) as caught:
        Node("n", 8, labels=labels)
    assert str(caught.value).startswith("labels of node n are out of order, or one stands twice")
    assert Node("n", 8, labels=(("a", "2"), ("b", "1"))).labels[0] == ("a", "2")


@pytest.mark.parametrize("gpus", [100_001, 999_999_999, 10**30])
def test_a_node_has_a_bounded_number_of_gpus(gpus: int) -> None:
    with pytest.raises(InputError) as caught:
        Cluster.homogeneous(2, gpus)
    assert str(caught.value) == f"node node-0 has {gpus} GPUs (give at most 100000)"


def test_a_pool_may_be_larger_than_a_node() -> None:
    assert Cluster.homogeneous(3, MAX_GPUS_PER_NODE).as_pool().gpus == 300_000


@pytest.mark.parametrize(("nodes", "gpus"), [(2.0, 8), ("2", 8), (True, 8), (2, 8.0), (2, "8"), (2, None)])
def test_nodes_and_gpus_are_whole_numbers(nodes: object, gpus: object) -> None:
    with pytest.raises(InputError, match="not a whole number"):
        Cluster.homogeneous(nodes, gpus)  # type: ignore[arg-type]


@pytest.mark.parametrize("gpus", [8.0, "8", None, True])
def test_the_gpus_of_a_node_are_a_whole_number(gpus: object) -> None:
    with pytest.raises(InputError, match=r"gpus of node a is .*, not a whole number"):
        Node("a", gpus)  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_are_as_good() -> None:
    cluster = Cluster.homogeneous(np.int64(2), np.int32(8))  # type: ignore[arg-type]
    assert cluster == Cluster.homogeneous(2, 8)
    assert {type(node.gpus) for node in cluster.nodes} == {int}
