"""Reasons of order, promises, time and preemption with known answers."""

from __future__ import annotations

from typing import Any

import pytest
from reason_scene import RUNS, Scene, equal, happening, helps

from trainmaster.model.event import Cancelled, Finished
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.reason import Level
from trainmaster.model.units import SECOND

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
