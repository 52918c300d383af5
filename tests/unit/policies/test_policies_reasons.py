"""Reasons of shape and room with known answers, and what would help."""

from __future__ import annotations

import pytest
from reason_scene import Scene, equal, happening, helps

from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Finished, NodeDown, NodeDrained
from trainmaster.model.reason import Level
from trainmaster.model.units import GPU

# -- what never mends itself ---------------------------------------------------------------------------


def test_larger_than_the_cluster() -> None:
    scene = Scene(equal(2))
    scene.job("a", 17)
    reason = scene.says("a", Level.NEVER_FITS, "never fits: it asks 17 GPUs, and the cluster has 16 GPUs")
    assert reason.permanent
    assert helps(reason) == {"gpus": "would start now if it asked 16 instead of 17 GPUs"}


def test_larger_than_any_node() -> None:
    scene = Scene(equal(2))
    scene.job("a", 9, pods=1)
    reason = scene.says(
        "a", Level.NEVER_FITS, "never fits: it asks 9 GPUs on one node, and the largest node has 8 GPUs"
    )
    assert reason.numbers == {"asked_gpus": 9 * GPU, "cluster_gpus": 16 * GPU, "largest_node_gpus": 8 * GPU}
    assert helps(reason) == {"gpus": "would start now if it asked 8 instead of 9 GPUs"}


def test_no_such_type() -> None:
    scene = Scene(Cluster((Node("a", 8, "A100"), Node("v", 8, "V100"))))
    scene.job("a", 2, gpu_types=("H100",))
    reason = scene.says("a", Level.GPU_TYPE, "no node offers H100; there is A100 and V100")
    assert reason.permanent and reason.names == {"gpu_types": "H100"}
    assert helps(reason) == {"gpu_types": "would start now on any type of GPU"}


def test_no_such_label() -> None:
    scene = Scene(Cluster((Node("a", 8, labels=(("zone", "a"),)),)))
    scene.job("a", 2, labels=(("zone", "b"),))
    reason = scene.says("a", Level.LABELS, "no node has zone=b")
    assert reason.permanent and helps(reason) == {
        "labels": "would start now on nodes without the labels that it names"
    }


def test_larger_than_any_rack() -> None:
    nodes = tuple(Node(f"n{number}", 8, topology=(f"r{number // 2}",)) for number in range(4))
    scene = Scene(Cluster(nodes, levels=("rack",)))
    scene.job("a", 24, within="rack")
    sentence = "never fits: it asks 24 GPUs within one rack, and the largest rack has 16 GPUs"
    reason = scene.says("a", Level.NEVER_FITS, sentence)
    assert helps(reason) == {
        "gpus": "would start now if it asked 16 instead of 24 GPUs",
        "within": "would start now if it need not stay within one rack",
    }


# -- nodes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [NodeDown, NodeDrained])
def test_nodes_that_take_no_jobs(event: type[NodeDown]) -> None:
    scene = Scene(equal(2))
    scene.tell(0, event(1))
    scene.job("a", 12)
    sentence = "waits for 12 GPUs; n1 is down or drained, and no other nodes could take it"
    reason = scene.says("a", Level.HEALTH, sentence)
    assert reason.names == {"nodes": "n1"} and reason.numbers["nodes_down"] == 1
    assert helps(reason) == {"gpus": "would start now if it asked 8 instead of 12 GPUs"}
    assert happening(reason) == ["would start now if n1 took jobs again"]


def test_a_node_is_down_but_the_others_would_do() -> None:
    scene = Scene(equal(3))
    scene.tell(0, NodeDown(2))
    scene.job("a", 8)
    scene.job("b", 8)
    scene.job("c", 8)
    scene.says("c", Level.CAPACITY, "waits for 8 GPUs on one node; all 16 GPUs are in use")


def test_large_nodes_have_enough_but_scattered() -> None:
    scene = Scene(Cluster((Node("big", 8), Node("vast", 8), Node("small", 4))))
    scene.job("a", 5)
    scene.job("b", 5)
    scene.job("c", 6)
    assert scene.why("c").level is Level.FRAGMENTATION


def test_only_large_nodes_would_do() -> None:
    scene = Scene(Cluster((Node("big", 8), Node("small", 4), Node("tiny", 4))))
    scene.job("a", 3, preemptible=False)  # on a small one
    scene.job("b", 3, pods=1, within="")
    scene.job("c", 7)
    scene.job("d", 5)
    sentence = "waits for 5 GPUs on one node; only big has so many, 1 GPU free there"
    reason = scene.says("d", Level.CAPACITY, "waits for 5 GPUs on one node; 3 of 16 GPUs are free")
    scene.tell(1, Finished("a"))
    reason = scene.says("d", Level.NODE_SHAPE, sentence)
    assert helps(reason) == {
        "gpus": "would start now if it asked 4 instead of 5 GPUs",
        "nodes": "would start now if it accepted any nodes",
    }


def test_scattered() -> None:
    scene = Scene(equal(3, 4))
    for name in "abc":
        scene.job(name, 3)
    scene.job("d", 2)
    sentence = (
        "waits for 2 GPUs on one node, and what is free is fragmented: 3 GPUs are free on 3 nodes, "
        "at most 1 on one"
    )
    reason = scene.says("d", Level.FRAGMENTATION, sentence)
    assert reason.numbers == {
        "asked_gpus": 2000,
        "free_gpus": 3000,
        "nodes_with_free": 3,
        "most_on_one_gpus": 1000,
    }
    assert helps(reason) == {
        "gpus": "would start now if it asked 1 instead of 2 GPUs",
        "nodes": "would start now if it accepted any nodes",
    }


def test_a_gang_starts_whole() -> None:
    scene = Scene(equal(1))
    scene.job("a", 5)
    scene.job("b", 8, pods=4)
    sentence = "waits for 4 pods of 2 GPUs at once; 3 are free: 1 of 4 pods fits, and a gang starts whole"
    reason = scene.says("b", Level.GANG, sentence)
    assert (reason.numbers["pods"], reason.numbers["pods_fitting"]) == (4, 1)
    assert helps(reason) == {"pods": "would start now with 1 instead of 4 pods"}


def test_pods_may_be_smaller() -> None:
    scene = Scene(equal(2))
    scene.job("a", 5)
    scene.job("b", 5)
    scene.job("c", 8, pods=2)
    reason = scene.why("c")
    assert reason.level is Level.CAPACITY
    assert helps(reason) == {"pod_gpus": "would start now if each of its pods asked 3 instead of 4 GPUs"}


def test_other_types_are_free() -> None:
    scene = Scene(Cluster((Node("a", 2, "A100"), Node("v", 4, "V100"))))
    scene.job("a", 1, gpu_types=("A100",))
    scene.job("b", 2, gpu_types=("A100",))
    sentence = "waits for 2 GPUs of type A100 on one node; of those 1 is free, of other types 4 GPUs are"
    reason = scene.says("b", Level.GPU_TYPE, sentence)
    assert not reason.permanent
    assert helps(reason) == {
        "gpus": "would start now if it asked 1 instead of 2 GPUs",
        "gpu_types": "would start now on any type of GPU",
    }


def test_other_labels_are_free() -> None:
    nodes = (Node("a", 2, labels=(("disk", "fast"),)), Node("b", 4, labels=(("disk", "slow"),)))
    scene = Scene(Cluster(nodes))
    scene.job("a", 2, labels=(("disk", "fast"),))
    scene.job("b", 1, labels=(("disk", "fast"),))
    sentence = "waits for 1 GPU on nodes with disk=fast; there none is free, on other nodes 4 GPUs are"
    assert "labels" in helps(scene.says("b", Level.LABELS, sentence))


def test_no_rack_has_room() -> None:
    nodes = tuple(Node(f"n{number}", 4, topology=(f"r{number // 2}",)) for number in range(4))
    scene = Scene(Cluster(nodes, levels=("rack",)))
    scene.job("a", 4, within="rack")
    scene.job("b", 4, labels=())
    scene.job("c", 4)
    scene.tell(1, Finished("a"))
    scene.job("d", 8, at=1, within="rack")
    sentence = "waits for 8 GPUs within one rack; 8 are free, at most 4 GPUs within one rack"
    reason = scene.says("d", Level.TOPOLOGY, sentence)
    assert reason.numbers["most_in_one_place_gpus"] == 4000
    assert helps(reason) == {
        "gpus": "would start now if it asked 4 instead of 8 GPUs",
        "within": "would start now if it need not stay within one rack",
    }


def test_all_in_use() -> None:
    scene = Scene(equal(2))
    scene.job("a", 16)
    scene.job("b", 1)
    assert not helps(scene.says("b", Level.CAPACITY, "waits for 1 GPU; all 16 GPUs are in use"))
    scene.job("c", 0.5)
    assert scene.why("c").sentence == "waits for 0.5 GPU; no GPU has so much left"


def test_a_pool_counts_gpus_alone() -> None:
    scene = Scene(equal(2), placement="pool")
    scene.job("a", 10)
    scene.job("b", 8, pods=1, gpu_types=("H100",))
    reason = scene.says("b", Level.CAPACITY, "waits for 8 GPUs; 6 of 16 GPUs are free")
    assert helps(reason) == {"gpus": "would start now if it asked 6 instead of 8 GPUs"}
