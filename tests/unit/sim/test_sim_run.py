"""The virtual cluster: what starting, stopping, failing and slow placement cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sim_helpers import trace_of, written

import trainmaster as tm
from trainmaster.model.action import Action, Kill, Start, Stop, Wake
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.errors import PolicyError
from trainmaster.model.event import (
    CheckpointWritten,
    Event,
    Finished,
    Lost,
    NodeDown,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView
from trainmaster.model.units import SECOND
from trainmaster.policies import Policy
from trainmaster.policies.parts.ordering import Order
from trainmaster.policies.registry import create
from trainmaster.sim.clock import Clock
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, run
from trainmaster.sim.virtual_cluster import VirtualCluster

ONE = tm.Cluster.homogeneous(1, 1)
GPU0 = Allocation.of([Share(0, 1, 1000)])
GPU1 = Allocation.of([Share(1, 1, 1000)])


class Bench:
    """A virtual cluster and its clock, driven by hand; seconds everywhere."""

    def __init__(self, *durations: float, speed: float = 1.0, **costs: float) -> None:
        jobs = [Job(f"j{row}", row, 0, Request(1000)) for row in range(len(durations))]
        self.clock = Clock([])
        self.cluster = VirtualCluster(
            self.clock,
            lambda job: round(durations[job.sequence] * SECOND),
            Costs(**costs),
            None if speed == 1.0 else lambda job, allocation: speed,
        )
        for job in jobs:
            self.cluster.on_submitted(Submitted(job))

    def do(self, at: float, *actions: Action) -> None:
        self.cluster.carry_out(round(at * SECOND), actions)

    def down(self, at: float, node: int) -> list[Lost]:
        """What is lost with a node; what happened until then is taken out as well."""
        now = round(at * SECOND)
        self.cluster.on_node_down(NodeDown(node), now)
        happened: list[Event] = []
        while (instant := self.clock.next_instant()) is not None and instant <= now:
            happened += self.clock.due(instant)
        return [event for event in happened if isinstance(event, Lost)]

    def events(self) -> list[tuple[float, Event]]:
        """All that will happen, in order; the cluster is told of stops and ends as in a simulation."""
        found: list[tuple[float, Event]] = []
        while (now := self.clock.next_instant()) is not None:
            for event in self.clock.due(now):
                found.append((now / SECOND, event))
                if isinstance(event, Stopped):
                    self.cluster.on_stopped(event)
                elif isinstance(event, Finished):
                    self.cluster.on_finished(event)
        return found


class TestVirtualCluster:
    def test_a_first_start(self) -> None:
        bench = Bench(100, start_s=10, restore_s=24)
        bench.do(5, Start("j0", GPU0))
        assert bench.events() == [(15, Started("j0")), (115, Finished("j0"))]

    def test_a_stop_saves_everything_and_the_next_start_restores(self) -> None:
        bench = Bench(100, start_s=10, restore_s=24, checkpoint_s=6)
        bench.do(0, Start("j0", GPU0))
        bench.do(40, Stop("j0"))
        assert bench.events() == [(46, Stopped("j0")), (46, CheckpointWritten("j0", 30 * SECOND))], (
            "the start and the end that were announced are called off"
        )
        bench.do(50, Start("j0", GPU0))
        assert bench.events() == [(74, Started("j0")), (74 + 70, Finished("j0"))]

    def test_a_stop_without_cost_writes_nothing(self) -> None:
        bench = Bench(100, checkpoint_s=0)
        bench.do(0, Start("j0", GPU0))
        bench.do(40, Stop("j0"))
        assert bench.events() == [(40, Stopped("j0"))]

    def test_a_kill_is_at_once(self) -> None:
        bench = Bench(100)
        bench.do(0, Start("j0", GPU0))
        bench.do(40, Kill("j0"))
        assert bench.events() == [(40, Stopped("j0"))]

    def test_a_job_stopped_while_starting_has_done_nothing(self) -> None:
        bench = Bench(100, start_s=10, checkpoint_s=0, restore_s=0)
        bench.do(0, Start("j0", GPU0))
        bench.do(4, Kill("j0"))
        bench.events()
        bench.do(5, Start("j0", GPU0))
        assert bench.events()[-1] == (105, Finished("j0"))

    def test_a_timer_comes_when_asked(self) -> None:
        bench = Bench()
        bench.do(0, Wake(7 * SECOND, "j0", 3))
        assert bench.events() == [(7, Timer("j0", 3))]

    def test_a_node_failure_keeps_what_was_saved_in_time(self) -> None:
        """Saved every 30 s of running: 60 of the 70 s since it began."""
        bench = Bench(1000, start_s=10, restore_s=0, checkpoint_interval_s=30)
        bench.do(0, Start("j0", GPU0))
        assert bench.down(80, 0) == [Lost("j0", 60 * SECOND, "node failure")]
        assert bench.events() == [], "nothing more comes of it"
        bench.do(100, Start("j0", GPU0))
        assert bench.events()[-1] == (100 + 940, Finished("j0"))

    def test_a_node_failure_after_a_stop_keeps_that_checkpoint(self) -> None:
        bench = Bench(1000, restore_s=0, checkpoint_s=0, checkpoint_interval_s=30)
        bench.do(0, Start("j0", GPU0))
        bench.do(50, Stop("j0"))
        bench.events()
        bench.do(60, Start("j0", GPU0))
        assert bench.down(80, 0) == [Lost("j0", 50 * SECOND, "node failure")]

    def test_a_node_failure_while_stopping_keeps_the_periodic_checkpoint(self) -> None:
        bench = Bench(1000, checkpoint_s=6, checkpoint_interval_s=30)
        bench.do(0, Start("j0", GPU0))
        bench.do(50, Stop("j0"))
        assert bench.down(53, 0) == [Lost("j0", 30 * SECOND, "node failure")]
        assert bench.events() == []

    def test_only_jobs_on_the_node_are_lost(self) -> None:
        bench = Bench(10, 10, 10)
        both = Allocation.of([Share(0, 1, 1000), Share(1, 2, 1000)])
        bench.do(0, Start("j0", GPU0), Start("j1", GPU1), Start("j2", both))
        assert [lost.job_id for lost in bench.down(5, 1)] == ["j1", "j2"]
        assert [lost.job_id for lost in bench.down(6, 1)] == [], "once"
        assert bench.events()[-1] == (10, Finished("j0"))

    def test_slow_placement_stretches_the_work(self) -> None:
        bench = Bench(100, speed=0.3, checkpoint_s=0, restore_s=0)
        bench.do(0, Start("j0", GPU0))
        bench.do(50, Stop("j0"))
        bench.events()
        bench.do(50, Start("j0", GPU0))
        at, event = bench.events()[-1]
        assert (event, at) == (Finished("j0"), pytest.approx(100 / 0.3, abs=1e-6))


class TestSimulation:
    def test_a_failing_node_costs_what_came_after_the_last_checkpoint(self, tmp_path: Path) -> None:
        """5,000 s on one GPU, saved every 1,800 s, the node away from 4,000 to 4,100, 24 s to restore."""
        failures = written(tmp_path, "f.csv", "time_s,node,event\n4000,node-0,down\n4100,0,up\n")
        result = tm.simulate(trace_of((0, 5000, 1)), ONE, "fifo", failures=failures, validate=True)
        summary = result.summary
        assert result.jobs["finish_s"].tolist() == [4100 + 24 + 1400]
        assert (summary["lost_gpu_s"], summary["preemptions"], summary["overhead_gpu_s"]) == (400, 0, 24)
        assert summary["utilization"] == 5000 / 5524

    def test_a_node_that_never_returns_leaves_jobs_unfinished(self, tmp_path: Path) -> None:
        failures = written(tmp_path, "f.csv", "time_s,node,event\n50,node-1,down\n")
        trace = trace_of((0, 100, 1), (0, 100, 1), (60, 10, 2))
        result = tm.simulate(trace, tm.Cluster.homogeneous(2, 1), "srtf", failures=failures, validate=True)
        assert result.jobs["status"].tolist() == ["finished", "finished", "unfinished"]
        assert (result.summary["jobs"], result.summary["finished"]) == (3, 2)

    def test_a_failure_at_the_instant_of_an_end_comes_after_it(self, tmp_path: Path) -> None:
        failures = written(tmp_path, "f.csv", "time_s,node,event\n100,node-0,down\n")
        result = tm.simulate(trace_of((0, 100, 1)), ONE, "fifo", failures=failures, validate=True)
        assert result.jobs["status"].tolist() == ["finished"]

    def test_failures_before_and_after_everything(self, tmp_path: Path) -> None:
        text = "time_s,node,event\n900,node-0,down\n0,node-0,down\n10,node-0,up\n"
        result = tm.simulate(
            trace_of((0, 100, 1)), ONE, "fifo", failures=written(tmp_path, "f.csv", text), validate=True
        )
        assert result.jobs["finish_s"].tolist() == [110]

    def test_a_policy_that_goes_round_in_circles_is_stopped(self) -> None:
        class Restless(Order):
            preemptive = True

        class Carousel(Policy):
            """Stops whoever runs for whoever waits."""

            name = "carousel"
            preemptive = True

            def compose(self) -> None:
                self.ordering = Restless()
                self.min_run = 0

            def plan(self, view: ClusterView) -> None:
                waiting = [job for members in view.pending_classes for job in members.ordered()]
                if waiting and view.running and not view.capacity.free_milli:
                    view.preempt(next(iter(view.running)))
                for job in waiting:
                    allocation = self.placement.find(view.capacity, job.job.request)
                    if allocation is not None:
                        view.start(job, allocation)

        trace = trace_of((0, 100, 1), (0, 100, 1), (10, 100, 1))
        options = Options(costs=Costs(checkpoint_s=0, restore_s=0))
        two = tm.Cluster.homogeneous(1, 2)
        setup = Setup(trace.jobs, [100 * SECOND] * 3, two, "carousel", options)
        with pytest.raises(PolicyError, match=r"policy carousel: over 10000 decisions at 10\.0 s"):
            run(setup, Carousel())

    def test_instants_are_shown_in_order_and_progress_is_told(self) -> None:
        seen: list[int] = []
        ended: list[int] = []

        def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
            seen.append(now)

        trace = trace_of(*((row, 5, 1) for row in range(2000)))
        setup = Setup(trace.jobs, [5 * SECOND] * 2000, ONE, "fifo", Options())
        outcome = run(setup, create("fifo"), watch=watch, progress=ended.append)
        assert seen == sorted(seen)
        assert ended == sorted(ended)
        assert ended[-1] > 0
        assert outcome.ledger.ended == 2000
        assert outcome.figures["events"] >= 6000

    def test_a_single_gpu_is_never_idle_while_jobs_wait(self) -> None:
        """The work of all jobs, one after the other, under every policy without costs."""
        trace = trace_of(*((row, 7 + row % 5, 1) for row in range(40)))
        work = sum(7 + row % 5 for row in range(40))
        for policy in ("fifo", "sjf", "srtf", "srsf", "las", "gittins", "priority", "drf", "timeslice"):
            summary = tm.simulate(
                trace, ONE, policy, predictor="oracle", costs=Costs(0, 0, 0), validate=True
            ).summary
            assert (summary["makespan_s"], summary["utilization"]) == (work, 1.0)
