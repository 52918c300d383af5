"""Clusters with labels and a topology: what is refused, and what stays as it was."""

from __future__ import annotations

import pytest

from trainmaster.model.cluster import Cluster, Node
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
