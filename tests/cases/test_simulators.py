"""Scenarios with the right answer, by number: what simulators and trace tools in the field got wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import trainmaster as tm
from trainmaster.model.action import Action, Start
from trainmaster.model.event import Cancelled, Event, Finished, NodeUp, Started, Stopped, Submitted, Timer
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.registry import create
from trainmaster.sim.clock import Clock
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Outcome, Setup, run
from trainmaster.traces import Truth, load_trace
from trainmaster.traces.readers.philly import machine_gpus

FREE = Costs(checkpoint_s=0, restore_s=0)
PREEMPTIVE = ("srtf", "srsf", "las", "gittins", "priority", "drf", "timeslice")
EVERY = (
    "fifo",
    "fifo(backfill=greedy)",
    "fifo(backfill=easy)",
    "fifo(backfill=conservative)",
    "sjf",
    *PREEMPTIVE,
)


def trace_of(*rows: tuple[str, float, float, float]) -> tm.Trace:
    """A trace from (id, submit, duration, GPUs), times in seconds."""
    jobs = [
        Job(name, row, round(submit * SECOND), Request(round(gpus * GPU)))
        for row, (name, submit, _, gpus) in enumerate(rows)
    ]
    return tm.Trace(jobs, [Truth(round(duration * SECOND)) for _, _, duration, _ in rows])


def spans(
    trace: tm.Trace, policy: str, *, gpus: int = 1, **settings: object
) -> dict[str, tuple[float, float]]:
    """(first start, finish) by job on one node, in seconds."""
    settings = {"costs": FREE, "predictor": "oracle", "validate": True, **settings}
    jobs = tm.simulate(trace, tm.Cluster.homogeneous(1, gpus), [policy], **settings).jobs
    return {str(row["job_id"]): (float(row["first_start_s"]), float(row["finish_s"])) for row in jobs}


class TestCase59:
    """Completion times were rounded up to the end of the round."""

    @pytest.mark.parametrize("policy", PREEMPTIVE)
    @pytest.mark.parametrize("placement", ["pool", "pack"])
    def test_a_job_ends_when_its_work_is_done(self, policy: str, placement: str) -> None:
        """A round of 360 s, a job of 370 s: its JCT is 370, not 720."""
        found = spans(trace_of(("a", 0, 370, 1)), f"{policy}(round_s=360)", placement=placement)
        assert found == {"a": (0, 370)}

    @pytest.mark.parametrize("policy", PREEMPTIVE)
    def test_its_gpu_is_free_from_then_on(self, policy: str) -> None:
        """At 370 the GPU is not counted as used any more; the next decision falls on the round at 720."""
        trace = trace_of(("a", 0, 370, 1), ("b", 365, 10, 1))
        instants: list[tuple[int, int]] = []
        outcome = watched(trace, f"{policy}(round_s=360)", free_gpus_into=instants)
        assert list(outcome.ledger.finish) == [370 * SECOND, 730 * SECOND]
        assert (370 * SECOND, GPU) in instants, "free at 370"
        assert outcome.ledger.hold_left[0] == 370 * SECOND


class TestCase60:
    """The restart overhead was charged at every interval though the job was not interrupted."""

    COSTS = Costs(checkpoint_s=0, restore_s=10, start_s=10)

    @pytest.mark.parametrize("policy", PREEMPTIVE)
    def test_alone_it_is_paid_once(self, policy: str) -> None:
        """An interval of 60, overhead 10, work 150: JCT 160, not 180."""
        found = spans(trace_of(("a", 0, 150, 1)), f"{policy}(round_s=60)", costs=self.COSTS)
        assert found == {"a": (0, 160)}

    @pytest.mark.parametrize("policy", ["srtf", "srsf"])
    def test_after_a_gap_it_is_paid_again(self, policy: str) -> None:
        """Stopped at 60 for a job of 50 + 10, on again at 120: 50 + (60) + 10 + 100 = JCT 230."""
        trace = trace_of(("a", 0, 150, 1), ("b", 60, 50, 1))
        found = spans(trace, f"{policy}(round_s=60,min_run_s=0)", costs=self.COSTS)
        assert found == {"a": (0, 230), "b": (60, 120)}

    def test_each_cost_is_charged_where_it_arises(self) -> None:
        """Start 5, checkpoint 3, restore 10. b starts at 63, ends at 118; a had 55, goes on from 130."""
        trace = trace_of(("a", 0, 150, 1), ("b", 60, 50, 1))
        costs = Costs(checkpoint_s=3, restore_s=10, start_s=5)
        found = spans(trace, "srtf(round_s=60,min_run_s=0)", costs=costs)
        assert found == {"a": (0, 225), "b": (63, 118)}


class TestCase61:
    """A job ended at t and the next started at t: tools showed 200 % use."""

    @pytest.mark.parametrize("policy", EVERY)
    @pytest.mark.parametrize("placement", ["pool", "pack", "spread"])
    def test_the_next_starts_at_the_very_instant(self, policy: str, placement: str) -> None:
        trace = trace_of(("a", 0, 100, 2), ("b", 100, 50, 2), ("c", 150, 25, 1), ("d", 150, 25, 1))
        found = spans(trace, policy, gpus=2, placement=placement)
        assert found == {"a": (0, 100), "b": (100, 150), "c": (150, 175), "d": (150, 175)}

    def test_the_cluster_is_used_to_100_percent_and_no_more(self) -> None:
        trace = trace_of(*((f"j{row}", 900 * row, 900, 2) for row in range(8)))
        result = tm.simulate(trace, tm.Cluster.homogeneous(1, 2), "fifo", costs=FREE, validate=True)
        assert result.summary["utilization"] == 1.0
        buckets = result.records[0].series["buckets"]
        assert buckets["used_gpus"] == [2, 2], "intervals are half-open"
        assert buckets["running_jobs"] == [1, 1]


class TestCase62:
    """Results differed between runs and machines; tests/unit/test_determinism.py tests the files."""

    def test_the_order_of_equal_jobs_is_that_of_the_rows(self) -> None:
        names = ["zeta", "alpha", "mu", "beta", "omega", "eta"]
        found = spans(trace_of(*((name, 0, 10, 1) for name in names)), "fifo")
        assert found == {name: (10.0 * row, 10.0 * row + 10) for row, name in enumerate(names)}


class TestCase65:
    """The machine list said 2 GPUs, a job log showed gpu0 to gpu7."""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        """Two jobs: the first used gpu0 to gpu7 of m51, the second gpu0 of m7."""
        records = [
            {
                "status": "Pass",
                "vc": "v",
                "jobid": name,
                "user": "u",
                "submitted_time": "2017-10-07 00:00:00",
                "attempts": [
                    {
                        "start_time": "2017-10-07 01:00:00",
                        "end_time": "2017-10-07 02:00:00",
                        "detail": [{"ip": machine, "gpus": [f"gpu{index}" for index in range(gpus)]}],
                    }
                ],
            }
            for name, machine, gpus in (("a", "m51", 8), ("b", "m7", 1))
        ]
        (tmp_path / "cluster_machine_list").write_text("machineId,number of GPUs\nm51,2\nm7,8\n")
        path = tmp_path / "cluster_job_log"
        path.write_text(json.dumps(records))
        return path

    def test_the_contradiction_is_reported_and_counted(self, log: Path) -> None:
        trace = load_trace(log)
        assert trace.problems.noted == {"machine_list_contradiction": 1}
        (example,) = trace.problems.examples
        assert example.row == 1
        assert example.message == "m51 has 2 GPUs by the machine list, job 'a' used 8 of it"
        assert len(trace) == 2, "the job is kept"

    def test_the_larger_number_counts_only_if_told(self, log: Path) -> None:
        assert machine_gpus(log) == {"m51": 2, "m7": 8}
        assert machine_gpus(log, trust="larger") == {"m51": 8, "m7": 8}


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


def watched(trace: tm.Trace, policy: str, *, free_gpus_into: list[tuple[int, int]]) -> Outcome:
    """Simulate, and note (instant, milli-GPUs not held) after each batch."""
    held: dict[str, int] = {}

    def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        for event in events:
            if isinstance(event, Finished | Stopped):
                del held[event.job_id]
        for action in actions:
            if isinstance(action, Start):
                held[action.job_id] = action.allocation.milli
        free_gpus_into.append((now, GPU - sum(held.values())))

    return run(setup_of(trace, policy), create(policy), watch=watch)
