"""What of cases 61 and 67 a case file can't say: figures of a result, and the clock itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import trainmaster as tm
from trainmaster.model.action import Action
from trainmaster.model.event import Cancelled, Event, Finished, NodeUp, Started, Stopped, Submitted, Timer
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.registry import create
from trainmaster.sim.clock import Clock
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, run
from trainmaster.traces import Truth

FREE = Costs(checkpoint_s=0, restore_s=0)
EVERY = (
    "fifo",
    "fifo(backfill=greedy)",
    "fifo(backfill=easy)",
    "fifo(backfill=conservative)",
    "sjf",
    "srtf",
    "srsf",
    "las",
    "gittins",
    "priority",
    "drf",
    "timeslice",
)


def trace_of(*rows: tuple[str, float, float, float]) -> tm.Trace:
    """A trace from (id, submit, duration, GPUs), times in seconds."""
    jobs = [
        Job(name, row, round(submit * SECOND), Request(round(gpus * GPU)))
        for row, (name, submit, _, gpus) in enumerate(rows)
    ]
    return tm.Trace(jobs, [Truth(round(duration * SECOND)) for _, _, duration, _ in rows])


class TestCase61:
    """A job ended at t and the next started at t: tools showed 200 % use."""

    def test_the_cluster_is_used_to_100_percent_and_no_more(self) -> None:
        trace = trace_of(*((f"j{row}", 900 * row, 900, 2) for row in range(8)))
        result = tm.simulate(trace, tm.Cluster.homogeneous(1, 2), "fifo", costs=FREE, validate=True)
        assert result.summary["utilization"] == 1.0
        buckets = result.records[0].series["buckets"]
        assert buckets["used_gpus"] == [2, 2], "intervals are half-open"
        assert buckets["running_jobs"] == [1, 1]


class TestCase67:
    """The heap key was (time, creation id, type), so the type never decided a tie; ids were class-global."""

    def test_completions_come_before_arrivals_whatever_was_announced_first(self) -> None:
        clock = Clock([])
        late = Job("late", 0, 5, Request(GPU))
        for event in (Timer(None, 1), Submitted(late), NodeUp(0), Started("b"), Stopped("a"), Finished("z")):
            clock.announce(5, event)
        clock.announce(4, Cancelled("c"))
        assert list(clock.due(4)) == [Cancelled("c")]
        order = [type(event) for event in clock.due(5)]
        assert order == [Finished, Stopped, NodeUp, Started, Submitted, Timer]

    def test_events_of_one_rank_keep_the_order_in_which_they_were_announced(self) -> None:
        clock = Clock([])
        for name in ("z", "a", "m"):
            clock.announce(1, Finished(name))
        assert list(clock.due(1)) == [Finished("z"), Finished("a"), Finished("m")]

    @pytest.mark.parametrize("policy", EVERY)
    def test_a_job_that_arrives_as_another_ends_finds_its_gpus_free(self, policy: str) -> None:
        trace = trace_of(("a", 0, 60, 1), ("b", 60, 30, 1))
        batches: list[list[type]] = []

        def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
            if now == 60 * SECOND:
                batches.append([type(event) for event in events if type(event) is not Timer])

        outcome = run(setup_of(trace, policy), create(policy), watch=watch)
        assert batches[0] == [Finished, Submitted], "one batch, the completion first"
        assert list(outcome.ledger.first_start) == [0, 60 * SECOND]
        assert sum(outcome.ledger.preemptions) == 0

    def test_numbers_of_events_belong_to_one_simulator(self) -> None:
        """Two clocks: what one announces doesn't move the other's sequence."""
        first, second = Clock([]), Clock([])
        for _ in range(5):
            first.announce(1, Finished("x"))
        second.announce(1, Finished("a"))
        first.announce(1, Finished("b"))
        assert list(second.due(1)) == [Finished("a")]
        assert list(first.due(1)) == [*[Finished("x")] * 5, Finished("b")]
        assert (first._sequence, second._sequence) == (6, 1)


def setup_of(trace: tm.Trace, policy: str) -> Setup:
    durations = [truth.duration or 0 for truth in trace.truths]
    options = Options(predictor="oracle", costs=FREE, validate=True)
    return Setup(trace.jobs, durations, tm.Cluster.homogeneous(1, 1), policy, options)
