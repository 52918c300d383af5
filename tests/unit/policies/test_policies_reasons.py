"""Reasons with known answers: one situation for each level, and what would help in it."""

from __future__ import annotations

from typing import Any

import pytest

from trainmaster.core.engine import Engine
from trainmaster.core.snapshot import capture
from trainmaster.model.action import Start
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError, PolicyError
from trainmaster.model.event import Cancelled, Event, Finished, NodeDown, NodeDrained, Started, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView, JobView
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.reason import MEANINGS, Level, Reason
from trainmaster.model.units import GPU, SECOND, to_milli
from trainmaster.policies.base import Policy
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

RUNS = 100
"""Seconds that every job is expected to run, unless it declares something."""


class Scene:
    """An engine whose jobs start at once and end when they are told to."""

    def __init__(
        self, cluster: Cluster, policy: str | type[Policy] = "fifo(backfill=greedy)", **how: Any
    ) -> None:
        made = create(policy, **how)
        placed = cluster.as_pool() if how.get("placement") == "pool" else cluster
        predictor = make_predictor("oracle", lambda job: job.declared or RUNS * SECOND)
        self.engine = Engine(placed, made, predictor, validate=True)
        self.count = 0

    def job(self, name: str, gpus: float = 1, at: float = 0, **more: Any) -> None:
        """A job is submitted; what is asked beyond GPUs may be a field of `Job` or `Request`."""
        asked = {key: more.pop(key) for key in (*Request.__dataclass_fields__,) if key in more}
        request = Request(to_milli(gpus), **asked)
        now = round(at * SECOND)
        self.tell(at, Submitted(Job(name, self.count, now, request, **more)))
        self.count += 1

    def tell(self, at: float, *events: Event) -> None:
        now = round(at * SECOND)
        actions = self.engine.handle(now, events)
        started = [Started(action.job_id) for action in actions if isinstance(action, Start)]
        if started:
            self.engine.handle(now, started)

    def why(self, name: str) -> Reason:
        return self.engine.explain(name)

    def says(self, name: str, level: Level, sentence: str) -> Reason:
        """The reason of a job, which must be this."""
        reason = self.why(name)
        assert (reason.level, reason.sentence) == (level, sentence)
        return reason


def equal(nodes: int, gpus: int = 8, **more: Any) -> Cluster:
    return Cluster(tuple(Node(f"n{number}", gpus) for number in range(nodes)), **more)


HAPPENINGS = ("jobs_end", "nodes_return", "job_withdrawn")


def helps(reason: Reason) -> dict[str, str]:
    """What the job could ask instead."""
    return {hint.change: hint.sentence for hint in reason.hints if hint.change not in HAPPENINGS}


def happening(reason: Reason) -> list[str]:
    """What could happen to others."""
    return [hint.sentence for hint in reason.hints if hint.change in HAPPENINGS]


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


# -- what queues say -----------------------------------------------------------------------------------

LAB = QueueTree(
    (
        Queue("lab", limit=8000),
        Queue("vision", "lab", guaranteed=2000),
        Queue("speech", "lab"),
        Queue("ads", guaranteed=4000, reclaim="quota"),
        Queue("guests", reclaim="none"),
    )
)


def test_unknown_queue() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 1, tenant="vison")
    sentence = "may not start: there is no queue 'vison' (did you mean 'vision'?)"
    reason = scene.says("a", Level.QUEUE_UNKNOWN, sentence)
    assert reason.permanent and not reason.hints


def test_more_than_the_limit() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 9, tenant="vision")
    reason = scene.says(
        "a", Level.LIMIT, "may never start: queue lab may hold 8 GPUs at most; the job asks 9"
    )
    assert reason.permanent
    assert helps(reason)["gpus"] == "would start now if it asked 8 instead of 9 GPUs"


def test_full_queue_and_who_stands_behind() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 6, tenant="vision")
    scene.job("b", 4, tenant="speech")
    scene.job("c", 1, tenant="speech")
    sentence = "waits for 4 GPUs on one node; queue lab holds 6 GPUs and may hold 8 GPUs at most"
    reason = scene.says("b", Level.LIMIT, sentence)
    assert not reason.permanent
    assert helps(reason) == {"gpus": "would start now if it asked 2 instead of 4 GPUs"}
    assert happening(reason) == ["would start now if a ended"]
    behind = scene.says("c", Level.ORDER, f"stands behind b, which {sentence}; it is 2nd in its queue")
    assert behind.names == {"behind": "b"} and behind.common == f"stands behind b, which {sentence}"


def test_places_are_counted_in_a_tenants_own_queue() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 7, tenant="vision")
    scene.job("x", 16, tenant="ads")
    scene.job("b", 2, tenant="speech")
    scene.job("c", 1, tenant="speech")
    scene.job("d", 1, tenant="speech")
    assert [scene.why(name).numbers.get("place") for name in "xbcd"] == [None, None, 2, 3]


def test_who_stands_before_the_limit_waits_for_room() -> None:
    scene = Scene(equal(2, 5, queues=LAB), "standard")
    scene.job("x", 5, tenant="ads")
    scene.job("a", 3, tenant="vision")
    scene.job("b", 3, tenant="speech")
    scene.job("c", 6, tenant="speech")
    assert (scene.why("b").level, scene.why("c").level) == (Level.QUOTA, Level.LIMIT)


def test_within_its_guarantee_it_is_not_the_quota() -> None:
    tree = QueueTree((Queue("x", guaranteed=4000), Queue("y", guaranteed=8000)))
    scene = Scene(equal(1, queues=tree), "standard(min_run_s=0)")
    scene.job("a", 8, tenant="y")
    scene.job("b", 4, at=1, tenant="x")
    assert scene.why("b").level is Level.CAPACITY


def test_whom_nobody_may_stop_is_not_the_quota() -> None:
    tree = QueueTree((Queue("x"), Queue("y")))
    scene = Scene(equal(1, queues=tree), "standard(min_run_s=0)")
    scene.job("a", 8, tenant="y", preemptible=False)
    scene.job("b", 4, at=1, tenant="x")
    assert scene.why("b").level is Level.CAPACITY


def test_guarantee_used_up() -> None:
    scene = Scene(equal(1, queues=LAB), "standard", defaults={"min_run_s": 0.0})
    scene.job("a", 4, tenant="ads")
    scene.job("g", 4, tenant="guests")
    scene.job("b", 2, tenant="ads", at=10)
    scene.says(
        "b",
        Level.QUOTA,
        "waits for 2 GPUs; all 8 GPUs are in use; with this job queue ads, which holds 4 GPUs, would be "
        "above the guarantee of 4 GPUs, so nobody gives way to it; GPUs are kept for it, and expected to be "
        "free at 100 s (in 90 s)",
    )
    scene.job("h", 1, tenant="guests", at=10)
    scene.says(
        "h",
        Level.QUOTA,
        "waits for 1 GPU; all 8 GPUs are in use; queue guests takes nothing back from others",
    )
    scene.job("v", 1, tenant="speech", at=10)
    assert scene.why("v").sentence.endswith("; queue lab is guaranteed none: it gets what others leave")


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


# -- order, promises, time -----------------------------------------------------------------------------


def test_behind_the_first() -> None:
    scene = Scene(equal(1), "fifo")
    scene.job("a", 5)
    scene.job("big", 9)
    scene.job("c", 1)
    scene.job("d", 1)
    scene.says(
        "d",
        Level.ORDER,
        "stands behind big, which never fits: it asks 9 GPUs, and the cluster has 8 GPUs; "
        "it is 3rd in the queue",
    )
    assert [hint.names for hint in scene.why("d").hints] == [("big",)]
    assert happening(scene.why("d")) == ["would start now if big were withdrawn"]


def test_who_is_in_the_way() -> None:
    scene = Scene(equal(2))
    for name, gpus in (("old", 6), ("young", 6), ("small", 2), ("tiny", 1)):
        scene.job(name, gpus, at=len(scene.engine.state.jobs))
    scene.job("c", 16, at=10)
    assert happening(scene.why("c")) == [], "four jobs are too many to name"
    scene.job("b", 8, at=10)
    assert happening(scene.why("b")) == ["would start now if tiny and young ended"]
    scene.tell(10, Cancelled("b"))
    scene.job("a", 5, at=10)
    assert happening(scene.why("a")) == ["would start now if young ended"]


def test_whom_others_would_pass() -> None:
    """Not what could be argued, but what happens: who comes before takes the GPUs."""
    scene = Scene(equal(1))
    scene.job("a", 8)
    scene.job("b", 8)
    scene.job("c", 8)
    assert happening(scene.why("b")) == ["would start now if a ended"]
    assert happening(scene.why("c")) == []


def test_no_room_under_easy_is_no_promise() -> None:
    scene = Scene(equal(1), "fifo(backfill=easy)")
    scene.job("a", 5)
    scene.job("b", 8)
    scene.job("c", 4)
    scene.says("c", Level.CAPACITY, "waits for 4 GPUs; 3 of 8 GPUs are free")


def test_promise_under_easy() -> None:
    scene = Scene(equal(1), "fifo(backfill=easy)")
    scene.job("a", 5)
    scene.job("b", 8)
    scene.job("long", 2, declared=200 * SECOND)
    end = "GPUs are kept for it, and expected to be free at 100 s (in 100 s)"
    reason = scene.says("b", Level.CAPACITY, f"waits for 8 GPUs; 3 of 8 GPUs are free; {end}")
    assert reason.numbers["expected_ns"] == 100 * SECOND
    sentence = (
        "waits for 2 GPUs, which are free but promised to b from 100 s (in 100 s) on; "
        "it is expected to run until 200 s (in 3.33 min)"
    )
    promise = scene.says("long", Level.PROMISE, sentence)
    assert promise.names == {"promised_to": "b"}
    assert happening(promise) == ["would start now if b were withdrawn"]
    assert promise.numbers == {
        "asked_gpus": 2000,
        "promised_ns": 100 * SECOND,
        "expected_end_ns": 200 * SECOND,
    }


def test_reservations_under_conservative() -> None:
    scene = Scene(equal(1), "fifo(backfill=conservative,depth=2)")
    scene.job("a", 5)
    scene.job("b", 8)
    scene.job("c", 2, declared=200 * SECOND)
    scene.job("d", 1)
    sentence = "waits for 2 GPUs, which are free but kept for jobs before it; its own are expected at 200 s"
    scene.says("c", Level.PROMISE, f"{sentence} (in 3.33 min)")
    scene.says(
        "d", Level.ORDER, "is not considered yet: only the first 2 of the queue are; it is 3rd in the queue"
    )


def test_promise_under_standard() -> None:
    scene = Scene(equal(2, 4), "standard")
    scene.job("a", 4, declared=50 * SECOND, preemptible=False)
    scene.job("b", 2, preemptible=False)
    scene.job("big", 4)
    scene.job("c", 2, declared=40 * SECOND, at=1)
    scene.job("d", 2, at=2)
    assert scene.why("big").sentence.endswith(
        "GPUs are kept for it, and expected to be free at 50 s (in 48 s)"
    )
    # On n0 nothing is free, so what is promised there keeps nobody waiting.
    assert scene.why("d").level is Level.CAPACITY
    scene.tell(30, Finished("a"))
    assert scene.engine.state.jobs["big"].allocation is not None


def test_must_not_start_yet() -> None:
    scene = Scene(equal(1))
    scene.job("a", 1, not_before=500 * SECOND)
    reason = scene.says("a", Level.EARLIEST_START, "must not start before 500 s (in 8.33 min)")
    assert reason.numbers == {"not_before_ns": 500 * SECOND} and not reason.hints


def test_between_rounds() -> None:
    scene = Scene(equal(1), "srtf(round_s=60)")
    scene.job("a", 1, at=10)
    scene.says("a", Level.ROUND, "waits for the next decision at 60 s (in 50 s): srtf decides every 60 s")


def test_in_rounds_a_hint_is_for_the_next() -> None:
    scene = Scene(equal(1), "srtf(round_s=60)")
    scene.job("a", 5)
    scene.job("b", 4, at=60, declared=3 * RUNS * SECOND)
    assert helps(scene.why("b")) == {
        "gpus": "would start at the next decision if it asked 3 instead of 4 GPUs"
    }


def test_gpus_are_being_given_up() -> None:
    scene = Scene(equal(1), "priority(min_run_s=0)")
    scene.job("a", 8)
    scene.job("b", 2, at=1, priority=1)
    reason = scene.says("b", Level.STOPPING, "has its 2 GPUs on n0 and starts once a has stopped there")
    assert reason.names == {"stopping": "a", "nodes": "n0"}


def test_who_stops_beside_is_not_waited_for() -> None:
    scene = Scene(equal(1))
    scene.job("a", 4)
    scene.job("b", 4)
    scene.tell(1, Cancelled("b"))
    scene.job("c", 4, at=1)
    scene.tell(2, Cancelled("a"))
    assert scene.why("c").names["stopping"] == "b"
    scene.job("d", 4, at=3)
    assert scene.why("d").names["stopping"] == "a"


# -- who gives way -------------------------------------------------------------------------------------


def test_minimum_run_time() -> None:
    scene = Scene(equal(1), "priority(min_run_s=60)")
    scene.job("a", 8, at=5)
    scene.job("b", 2, at=10, priority=1)
    sentence = "waits for 2 GPUs; a would give way to it, but may not be stopped before 65 s (in 55 s)"
    sentence += ": its minimum run time"
    reason = scene.says("b", Level.PROTECTION, sentence)
    assert reason.names == {"protected": "a"} and reason.numbers["until_ns"] == 65 * SECOND


@pytest.mark.parametrize("placement", ["pack", "pool"])
def test_the_first_minimum_run_time_that_helps(placement: str) -> None:
    """Not that of a stronger job, nor one that frees too little."""
    scene = Scene(equal(2, 4), "priority(min_run_s=60)", placement=placement)
    scene.job("strong", 3, at=1, priority=2, preemptible=True)
    scene.job("weak", 1, at=2)
    scene.job("free", 1, at=3, min_run=0)
    scene.job("late", 3, at=4)
    scene.job("c", 4, at=10, priority=1)
    reason = scene.why("c")
    assert (reason.names, reason.numbers["until_ns"]) == ({"protected": "late"}, 64 * SECOND)
    scene.job("d", 2, at=10, priority=1)
    expected = {"pack": ("late", 64), "pool": ("weak", 62)}[placement]
    reason = scene.why("d")
    assert (reason.names["protected"], reason.numbers["until_ns"]) == (expected[0], expected[1] * SECOND)


def test_a_gang_takes_who_may_stop_already() -> None:
    scene = Scene(equal(2, 4), "priority(min_run_s=60)")
    scene.job("a", 4, at=5, min_run=0)
    scene.job("b", 4, at=20)
    scene.job("c", 8, at=30, priority=1)
    assert scene.why("c").names == {"protected": "b"}
    strong = Scene(equal(2, 4), "priority(min_run_s=60)")
    strong.job("a", 4, at=5, priority=1)
    strong.job("b", 4, at=20)
    strong.job("c", 8, at=30, priority=1)
    assert strong.why("c").level is Level.CAPACITY


def test_minimum_run_time_in_a_queue_and_of_a_borrower() -> None:
    tree = QueueTree((Queue("x", guaranteed=8000), Queue("y")))
    scene = Scene(equal(1, queues=tree), "standard(min_run_s=60)")
    scene.job("a", 6, at=5, tenant="y")
    scene.job("b", 2, at=6, tenant="x")
    scene.job("c", 2, at=10, tenant="x")
    assert scene.why("c").names == {"protected": "a"}
    scene.job("d", 1, at=11, tenant="y", priority=1)
    assert scene.why("d").numbers["until_ns"] == 65 * SECOND


def test_minimum_run_times_of_a_gangs_victims() -> None:
    scene = Scene(equal(2, 4), "priority(min_run_s=60)")
    scene.job("a", 4, at=5)
    scene.job("b", 4, at=20)
    scene.job("c", 8, at=30, priority=1)
    reason = scene.why("c")
    assert (reason.level, reason.names, reason.numbers["until_ns"]) == (
        Level.PROTECTION,
        {"protected": "b"},
        80 * SECOND,
    )


def test_not_all_who_give_way_would_be_enough() -> None:
    scene = Scene(equal(2, 4), "priority(min_run_s=0)")
    for name in "ab":
        scene.job(f"{name}-low", 1)
        scene.job(f"{name}-high", 3, priority=1)
    scene.job("c", 4, at=1, priority=1)
    scene.says(
        "c",
        Level.CAPACITY,
        "waits for 4 GPUs on one node; all 8 GPUs are in use; no node can reach 4 free by evicting others: "
        "at most 1 GPU",
    )
    assert helps(scene.why("c")) == {
        "gpus": "would start as soon as others have stopped for it if it asked 1 instead of 4 GPUs"
    }


def test_nobody_gives_way() -> None:
    for policy in ("priority(min_run_s=0)", "standard(min_run_s=0)", "srtf(min_run_s=0)"):
        for placement in ("pack", "pool"):
            scene = Scene(equal(1), policy, placement=placement)
            scene.job("a", 8)
            scene.job("b", 2, at=1, declared=3 * RUNS * SECOND)
            assert "; no running job gives way to it" in scene.why("b").sentence


def test_nobody_gives_way_before_its_time_is_over() -> None:
    scene = Scene(equal(1), "timeslice(quantum_s=600,min_run_s=0)")
    scene.job("a", 8)
    scene.job("b", 2, at=60)
    sentence = (
        "waits for 2 GPUs; all 8 GPUs are in use; no running job gives way to it before 600 s (in 9 min)"
    )
    scene.says("b", Level.CAPACITY, sentence)


@pytest.mark.parametrize(
    "policy", ["fifo(backfill=easy)", "srtf(min_run_s=0)", "standard(min_run_s=0)", "drf(min_run_s=0)"]
)
def test_what_jobs_have_in_common_is_worked_out_once(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(equal(4), policy)
    scene.job("a", 32, preemptible=False)
    for number in range(200):
        scene.job(f"j{number}", 2 + number % 2)
    placement = scene.engine.policy.placement  # type: ignore[attr-defined]
    find, calls = placement.find, []

    def counted(*asked: Any, **how: Any) -> Any:
        calls.append(asked)
        return find(*asked, **how)

    monkeypatch.setattr(placement, "find", counted)
    assert len(scene.engine.explain_all()) == 200
    assert len(calls) < 20


# -- whom one may ask ----------------------------------------------------------------------------------


class Stubborn(Policy):
    """Starts nobody, in a way of its own."""

    name = "stubborn"
    source = "this test"

    def plan(self, view: ClusterView) -> None:
        """Nothing."""


def test_a_policy_of_ones_own_need_not_say_why() -> None:
    scene = Scene(equal(1), Stubborn)
    scene.job("a", 2)
    scene.says("a", Level.POLICY, "waits although there is room on n0: stubborn does not say why")
    scene.job("b", 9)
    assert scene.why("b").level is Level.NEVER_FITS


class Meddler(Stubborn):
    name = "meddler"

    def explain(self, view: Any, job: JobView) -> Reason:
        view.preempt(job)
        raise AssertionError


class Broken(Stubborn):
    name = "broken"

    def explain(self, view: Any, job: JobView) -> Reason:
        raise KeyError("no idea")


class Uncopied(Stubborn):
    name = "uncopied"

    def compose(self) -> None:
        self.rows = (row for row in range(3))

    def explain(self, view: Any, job: JobView) -> Reason:
        return Reason(Level.CAPACITY, "waits")


class Curious(Stubborn):
    name = "curious"

    def explain(self, view: Any, job: JobView) -> Reason:
        assert len(view.fresh()) == 1 and view.improved() == view.touched() == {0, 1}
        assert [members.head() for members in view.pending_classes] == [job]
        return Reason(Level.CAPACITY, "waits")


def test_a_policy_may_look_at_what_it_reads_only_once() -> None:
    scene = Scene(equal(2), Curious)
    scene.job("a", 2)
    before = capture(scene.engine)
    assert scene.why("a").sentence == scene.why("a").sentence == "waits"
    assert capture(scene.engine) == before
    assert len(scene.engine.state.fresh) == 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Meddler, "policy meddler: takes a step while it is asked why a job waits"),
        (Broken, "policy broken: at 0.0 s: KeyError: 'no idea'"),
        (Uncopied, "policy uncopied: at 0.0 s: TypeError: cannot pickle 'generator' object"),
    ],
)
def test_a_policy_that_fails_when_asked(policy: type[Policy], message: str) -> None:
    scene = Scene(equal(1), policy)
    scene.job("a", 2)
    with pytest.raises(PolicyError, match=message):
        scene.why("a")


def test_who_does_not_wait_has_no_reason() -> None:
    scene = Scene(equal(1))
    scene.job("alpha", 8)
    scene.job("beta", 1)
    with pytest.raises(InputError, match="job alpha is running: only a job that waits has a reason to"):
        scene.why("alpha")
    with pytest.raises(InputError, match=r"there is no job 'bet' \(did you mean 'beta'\?\)"):
        scene.why("bet")
    scene.tell(1, Cancelled("beta"))
    assert scene.engine.explain_all() == {}


def test_every_level_has_its_words() -> None:
    assert set(MEANINGS) == set(Level)


def test_json_has_gpus_and_seconds() -> None:
    scene = Scene(equal(1), "fifo(backfill=easy)")
    scene.job("a", 5)
    scene.job("b", 8)
    document = scene.why("b").as_dict()
    assert document["level"] == "capacity" and document["numbers"]["expected_s"] == 100.0
    assert document["hints"] == [
        {
            "change": "gpus",
            "sentence": "would start now if it asked 3 instead of 8 GPUs",
            "numbers": {"asked_gpus": 8, "instead_gpus": 3},
            "names": [],
        },
        {"change": "jobs_end", "sentence": "would start now if a ended", "numbers": {}, "names": ["a"]},
    ]
