"""The engine, event by event: what it asks for, when it asks the policy, what it refuses."""

from __future__ import annotations

import pytest
from core_helpers import Told, both, engine_of, find, gpus, job, run_at_once, starts, stops

from trainmaster.core.engine import Engine
from trainmaster.core.invariants import check
from trainmaster.model.action import Kill, Start, Stop, Wake
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import EngineError, PolicyError
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Failed,
    Finished,
    Lost,
    NodeDown,
    NodeUp,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView, Estimate, Phase
from trainmaster.model.units import SECOND
from trainmaster.policies.parts.ordering import Order, ShortestRemainingTime
from trainmaster.predict import Oracle


class Preemptive(Order):
    """Jobs give way; keys don't matter here."""

    preemptive = True


class TestStarting:
    def test_a_start_is_a_request_and_its_answer_an_event(self) -> None:
        policy = Told()
        engine = engine_of(policy, 2)
        policy.steps = [starts("a", gpus(0, 0b11))]
        assert engine.handle(5, [Submitted(job("a", 2))]) == [Start("a", gpus(0, 0b11))]
        state = engine.state.jobs["a"]
        assert (state.phase, state.started_at, state.attained(9)) == (Phase.STARTING, 5, 0)
        assert engine.handle(9, [Started("a")]) == []
        assert (state.phase, state.running_since, state.attained(12)) == (Phase.RUNNING, 9, 3)
        engine.handle(20, [Finished("a")])
        assert (engine.state.jobs, engine.state.capacity.free_milli) == ({}, 2000)

    def test_a_job_promised_the_gpus_of_a_victim_starts_when_they_are_empty(self) -> None:
        policy = Told(ordering=Preemptive())
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        assert engine.handle(10, [Submitted(job("b", sequence=1))]) == [Stop("a")]
        assert engine.state.jobs["b"].phase is Phase.NOMINATED
        assert engine.handle(13, [CheckpointWritten("a", 10)]) == []
        assert engine.handle(14, [Stopped("a")]) == [Start("b", gpus(0, 1))]
        waiting = engine.state.jobs["a"]
        assert (waiting.phase, waiting.pending_since, waiting.done(99), waiting.preemptions) == (
            Phase.PENDING,
            14,
            10,
            1,
        )

    def test_a_victim_that_finishes_first_makes_room_too(self) -> None:
        policy = Told(ordering=Preemptive())
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        engine.handle(10, [Submitted(job("b", sequence=1))])
        assert engine.handle(11, [Finished("a")]) == [Start("b", gpus(0, 1))]

    def test_a_late_answer_to_a_start_that_was_called_off_is_ignored(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        policy.steps = [starts("a", gpus(0, 1))]
        engine.handle(0, [Submitted(job("a"))])
        assert engine.handle(1, [Cancelled("a")]) == [Kill("a")]
        assert engine.handle(2, [Started("a")]) == []
        assert engine.state.jobs["a"].phase is Phase.STOPPING
        assert engine.handle(3, [Started("b")]) == []

    def test_work_that_was_lost_is_taken_back(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        engine.handle(50, [Lost("a", 30, "node failure")])
        lost = engine.state.jobs["a"]
        assert (lost.phase, lost.done(60), lost.attained(60)) == (Phase.PENDING, 30, 50)


class TestAsking:
    def test_asked_on_what_can_change_a_decision(self) -> None:
        policy = Told()
        engine = engine_of(policy, 2, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1)), (job("b"), gpus(0, 2))])
        assert policy.asked == [0], "on submission, not on the start"
        engine.handle(1, [CheckpointWritten("a", 1)])
        assert policy.asked == [0]
        for now, event in enumerate((Finished("a"), NodeDown(1), NodeUp(1), Lost("b", 0)), start=2):
            engine.handle(now, [event])
            assert policy.asked[-1] == now
        engine.handle(7, [Cancelled("b")])
        assert policy.asked[-1] == 7

    def test_several_events_of_an_instant_are_one_question(self) -> None:
        policy = Told()
        engine = engine_of(policy, 4)
        engine.handle(3, [Submitted(job(name, sequence=row)) for row, name in enumerate("abc")])
        assert (policy.asked, engine.decisions) == ([3], 1)

    def test_asked_on_a_late_start_only_without_a_minimum_run_time(self) -> None:
        for min_run, asked in ((0, [0, 9]), (1, [0])):
            policy = Told(ordering=Preemptive(), min_run=min_run)
            engine = engine_of(policy, 1)
            policy.steps = [starts("a", gpus(0, 1))]
            engine.handle(0, [Submitted(job("a"))])
            engine.handle(9, [Started("a")])
            assert policy.asked == asked

    def test_rounds_gather_what_happens(self) -> None:
        policy = Told(round=10)
        engine = engine_of(policy, 2)
        assert engine.handle(1, [Submitted(job("a"))]) == [Wake(10, None, 1)]
        assert engine.handle(4, [Submitted(job("b", sequence=1))]) == []
        policy.steps = [both(starts("a", gpus(0, 1)), starts("b", gpus(0, 2)))]
        assert len(engine.handle(10, [Timer(None, 1)])) == 2
        assert policy.asked == [10]
        engine.handle(20, [Finished("a")])
        assert policy.asked == [10, 20], "an event on the beat needs no timer"


class TestTimers:
    def test_a_policy_is_woken_at_the_earliest_instant_it_named(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        policy.steps = [both(lambda view: view.wake(50), lambda view: view.wake(20))]
        assert engine.handle(0, [Submitted(job("a"))]) == [Wake(20, None, 1)]
        policy.steps = [lambda view: view.wake(30)]
        assert engine.handle(1, [Submitted(job("b", sequence=1))]) == [], "20 is sooner"
        policy.steps = [lambda view: view.wake(10)]
        assert engine.handle(2, [Submitted(job("c", sequence=2))]) == [Wake(10, None, 2)]
        engine.handle(10, [Timer(None, 2)])
        assert policy.asked == [0, 1, 2, 10]
        engine.handle(20, [Timer(None, 1)])
        assert policy.asked == [0, 1, 2, 10], "a stale timer"

    def test_a_policy_cannot_wake_itself_in_the_past(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        policy.steps = [lambda view: view.wake(7)]
        with pytest.raises(PolicyError, match="policy told: asks to be woken at 7, which is not after now"):
            engine.handle(7, [Submitted(job("a"))])

    def test_a_waiting_job_accepts_any_nodes_after_a_while(self) -> None:
        policy = Told(relax=10)
        engine = engine_of(policy, 1)
        assert engine.handle(5, [Submitted(job("a"))]) == [Wake(15, "a", 0)]
        assert [(c.relaxed, c.head()) for c in engine._view.pending_classes] == [
            (False, engine.state.jobs["a"])
        ]
        engine.handle(15, [Timer("a", 0)])
        assert [(c.relaxed, c.head()) for c in engine._view.pending_classes] == [
            (True, engine.state.jobs["a"])
        ]
        assert policy.asked == [5, 15]

    def test_the_timer_of_an_earlier_wait_is_stale(self) -> None:
        policy = Told(relax=10)
        engine = engine_of(policy, 1)
        policy.steps = [starts("a", gpus(0, 1))]
        engine.handle(0, [Submitted(job("a"))])
        engine.handle(1, [Started("a")])
        assert engine.handle(4, [Lost("a", 0)]) == [Wake(14, "a", 2)]
        engine.handle(10, [Timer("a", 0)])
        assert [members.relaxed for members in engine._view.pending_classes] == [False]
        engine.handle(14, [Timer("a", 2)])
        assert [members.relaxed for members in engine._view.pending_classes] == [True]

    def test_an_estimate_that_was_outlived_is_made_anew(self) -> None:
        class Growing(Oracle):
            exact = False

            def predict(self, job: Job, attained: int, now: int) -> Estimate:
                return Estimate(100 if attained < 100 else 2 * attained)

        policy = Told(ordering=ShortestRemainingTime())
        engine = Engine(Cluster.homogeneous(1, 1), policy, Growing(lambda job: 1), validate=True)
        policy.steps = [starts("a", gpus(0, 1))]
        engine.handle(0, [Submitted(job("a"))])
        assert engine.handle(0, [Started("a")]) == [Wake(100, "a", 1)]
        state = engine.state.jobs["a"]
        before = state.running_key
        assert engine.handle(100, [Timer("a", 1)]) == [Wake(200, "a", 1)]
        assert (state.estimate.total, state.expected_end(100)) == (200, 200)
        assert state.running_key > before
        assert policy.asked[-1] == 100

    @pytest.mark.parametrize("speed", [0.3, 0.7, 1.3, 3.0])
    def test_an_estimate_is_outlived_on_fast_and_slow_gpus_too(self, speed: float) -> None:
        """The instant at which the predicted work is done is rounded, its timer is not lost."""

        class Twice(Oracle):
            exact = False

            def predict(self, job: Job, attained: int, now: int) -> Estimate:
                return Estimate(100 * SECOND if attained < 5 * SECOND else 10**6 * SECOND)

        policy = Told(ordering=ShortestRemainingTime())
        predictor = Twice(lambda job: 1, lambda job, allocation: speed)
        engine = Engine(Cluster.homogeneous(1, 1), policy, predictor, validate=True)
        policy.steps = [starts("a", gpus(0, 1))]
        engine.handle(0, [Submitted(job("a"))])
        actions = engine.handle(0, [Started("a")])
        for _ in range(3):
            if engine.state.jobs["a"].estimate.total > 100 * SECOND:
                break
            (timer,) = actions
            assert isinstance(timer, Wake)
            actions = engine.handle(timer.at, [Timer("a", timer.version)])
        assert engine.state.jobs["a"].estimate.total == 10**6 * SECOND


class TestCancelling:
    def test_a_waiting_job_is_gone_at_once(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        engine.handle(0, [Submitted(job("a"))])
        assert engine.handle(1, [Cancelled("a")]) == []
        assert engine.state.jobs == {}
        assert [members.head() for members in engine._view.pending_classes] == []

    def test_a_nominated_job_gives_its_promise_back(self) -> None:
        policy = Told(ordering=Preemptive())
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        engine.handle(1, [Submitted(job("b", sequence=1))])
        engine.handle(2, [Cancelled("b")])
        assert "b" not in engine.state.jobs
        assert engine.state.capacity.free_milli == 1000
        assert engine.handle(3, [Stopped("a")]) == []

    @pytest.mark.parametrize("end", ["stopped", "lost", "finished", "failed"])
    def test_a_running_job_is_killed_and_never_comes_back(self, end: str) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        assert engine.handle(4, [Cancelled("a")]) == [Kill("a")]
        assert engine.state.capacity.free_milli == 1000, "its GPUs can be planned at once"
        ends = {
            "stopped": Stopped("a"),
            "lost": Lost("a", 4),
            "finished": Finished("a"),
            "failed": Failed("a"),
        }
        engine.handle(6, [ends[end]])
        assert engine.state.jobs == {}
        assert policy.asked[-1] == 6

    def test_a_job_that_is_being_stopped_can_be_cancelled(self) -> None:
        policy = Told(ordering=Preemptive())
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        engine.handle(1, [Submitted(job("b", sequence=1))])
        assert engine.handle(2, [Cancelled("a")]) == [Kill("a")]
        assert engine.handle(3, [Stopped("a")]) == [Start("b", gpus(0, 1))]
        assert list(engine.state.jobs) == ["b"]


class TestNodes:
    def test_a_promise_on_a_node_that_fails_is_void(self) -> None:
        policy = Told(ordering=Preemptive())
        engine = engine_of(policy, 1, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        engine.handle(1, [Submitted(job("b", sequence=1))])
        policy.steps = [starts("b", gpus(1, 1))]
        assert engine.handle(2, [NodeDown(0), Lost("a", 0)]) == [Start("b", gpus(1, 1))]
        assert engine.state.jobs["a"].phase is Phase.PENDING

    def test_nothing_starts_on_a_node_that_is_down(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1, 1)
        engine.handle(0, [NodeDown(0)])
        policy.steps = [starts("a", gpus(0, 1))]
        with pytest.raises(PolicyError, match=r"^policy told: job a: node n0 is down$"):
            engine.handle(1, [Submitted(job("a"))])


class TestBadPlans:
    """A policy's mistake is named, and nothing of its plan is carried out."""

    def plan(self, *steps: object, allocation: Allocation | None = None, **asked: object) -> str:
        policy = Told(ordering=Preemptive(), min_run=5)
        engine = engine_of(policy, 2, 2)
        run_at_once(engine, policy, [(job("old", 1, **asked), gpus(0, 0b01))])
        policy.steps = [both(*steps)]  # type: ignore[arg-type]
        before = (list(engine.state.capacity.free), engine.state.capacity.free_milli)
        with pytest.raises(PolicyError) as caught:
            engine.handle(10, [Submitted(job("new", 2, sequence=1))])
        assert (engine.state.capacity.free, engine.state.capacity.free_milli) == before
        assert engine.state.jobs["old"].phase is Phase.RUNNING
        assert engine.state.jobs["new"].phase is Phase.PENDING
        check(engine.state, engine._nominated, 10)
        message = str(caught.value)
        assert message.startswith("policy told: ") and "\n" not in message
        return message

    def test_gpus_that_are_not_free(self) -> None:
        assert self.plan(stops("old"), starts("new", gpus(1, 0b11)), starts("old", gpus(0, 1))).endswith(
            "job old: can't start, it is stopping"
        )
        assert self.plan(starts("new", gpus(0, 0b11))) == (
            "policy told: job new: node n0 has 1 whole GPUs free (devices 0x2), not the 2 asked (devices 0x3)"
        )

    @pytest.mark.parametrize("method", ["pending_key", "running_key", "next_change", "finished"])
    def test_an_ordering_that_raises_is_named_with_its_line(self, method: str) -> None:
        def broken(*_: object) -> int:
            raise KeyError("what\never")

        policy = Told(ordering=Preemptive())
        setattr(policy.ordering, method, broken)
        engine = engine_of(policy, 1)
        with pytest.raises(
            PolicyError, match=r"^policy told: at 0\.0 s: KeyError: 'what\\never' \(.*line \d"
        ):
            run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
            engine.handle(0, [Finished("a")])

    def test_another_number_of_gpus(self) -> None:
        assert self.plan(starts("new", gpus(1, 0b1))).endswith("job new: asks 2 GPUs and was given 1")

    def test_gpus_that_there_are_not(self) -> None:
        assert self.plan(starts("new", Allocation.of([Share(7, 0b11, 2000)]))).endswith(
            "job new: there is no node 7"
        )
        twice = Allocation.of([Share(1, 0b1, 1000), Share(1, 0b1, 1000)])
        assert self.plan(starts("new", twice)).endswith("job new: a GPU of node n1 is named twice")

    def test_the_same_job_twice(self) -> None:
        new = starts("new", gpus(1, 0b11))
        assert self.plan(new, new).endswith("job new: can't start, it is nominated")
        assert self.plan(stops("old"), stops("old")).endswith("job old: can't be stopped, it is stopping")

    def test_a_job_that_must_not_be_stopped(self) -> None:
        assert self.plan(stops("old"), preemptible=False).endswith(
            "job old: can't be stopped, it is not preemptible"
        )
        assert self.plan(stops("new")).endswith("job new: can't be stopped, it is pending")

    def test_a_job_of_somebody_else(self) -> None:
        assert self.plan(lambda view: view.preempt("old")) == "policy told: 'old' is not a job of this view"  # type: ignore[arg-type]

    def test_a_job_within_its_minimum_run_time(self) -> None:
        policy = Told(ordering=Preemptive(), min_run=60)
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a"), gpus(0, 1))])
        policy.steps = [stops("a")]
        with pytest.raises(PolicyError, match="job a: can't be stopped yet, it is protected"):
            engine.handle(59, [Submitted(job("b", sequence=1))])
        policy.steps = [both(stops("a"), starts("b", gpus(0, 1)))]
        assert engine.handle(60, [Submitted(job("c", sequence=2))]) == [Stop("a")]

    def test_the_wrong_type(self) -> None:
        policy = Told()
        cluster = Cluster((Node("n0", 1, "V100"), Node("n1", 1, "A100")))
        engine = Engine(cluster, policy, Oracle(lambda job: 1), validate=True)
        policy.steps = [starts("a", gpus(0, 1))]
        with pytest.raises(PolicyError, match=r"^policy told: job a: node n0 has GPUs of type 'V100'$"):
            engine.handle(0, [Submitted(job("a", gpu_types=("A100",)))])


class TestBadEvents:
    def test_time_runs_forwards(self) -> None:
        engine = engine_of(Told(), 1)
        engine.handle(5, [])
        engine.handle(5, [])
        with pytest.raises(EngineError, match="time runs backwards: 4 after 5"):
            engine.handle(4, [])

    def test_a_job_is_submitted_once(self) -> None:
        engine = engine_of(Told(), 1)
        with pytest.raises(EngineError, match="job a was submitted twice"):
            engine.handle(0, [Submitted(job("a")), Submitted(job("a"))])

    @pytest.mark.parametrize(
        "event",
        [Finished("x"), Failed("x"), Stopped("x"), Lost("x", 0), Cancelled("x"), CheckpointWritten("x", 0)],
    )
    def test_a_job_nobody_knows_is_named(self, event: Finished) -> None:
        with pytest.raises(EngineError, match="an event names job x, which is not in the system"):
            engine_of(Told(), 1).handle(0, [event])


class TestInvariants:
    """`validate` finds a state that was tampered with."""

    def engine(self) -> Engine:
        policy = Told()
        engine = engine_of(policy, 2, 2)
        run_at_once(engine, policy, [(job("a", 2), gpus(0, 0b11))])
        engine.handle(1, [Submitted(job("b", sequence=1))])
        return engine

    @pytest.mark.parametrize(
        ("attribute", "value", "what"),
        [
            ("phase", Phase.PENDING, "job a"),
            ("running_since", -1, "job a makes progress: found False, expected True"),
            ("allocation", gpus(1, 0b11), "jobs by node"),
            ("pending_since", 99, "job a has a clock that runs backwards"),
        ],
    )
    def test_of_a_job(self, attribute: str, value: object, what: str) -> None:
        engine = self.engine()
        setattr(engine.state.jobs["a"], attribute, value)
        with pytest.raises(EngineError, match=what):
            engine.handle(2, [])

    def test_of_the_free_gpus(self) -> None:
        engine = self.engine()
        engine.state.capacity.free_milli += 1000
        with pytest.raises(EngineError, match="invariant broken: free milli-GPUs: found 3000, expected 2000"):
            engine.handle(2, [])

    def test_of_the_tenants_accounts(self) -> None:
        engine = self.engine()
        engine.state.allocated[""] = 500
        with pytest.raises(EngineError, match="GPUs of tenant '': found 500, expected 2000"):
            engine.handle(2, [])

    def test_of_the_queue(self) -> None:
        engine = self.engine()
        engine.state.jobs["b"].ticket = 0
        with pytest.raises(EngineError, match="job b is queued: found False, expected True"):
            engine.handle(2, [])

    def test_of_a_device_that_is_used_twice(self) -> None:
        policy = Told()
        engine = engine_of(policy, 1)
        run_at_once(engine, policy, [(job("a", 0.6), Allocation.of([Share(0, 1, 600)]))])
        state = engine.state
        engine.handle(1, [Submitted(job("b", 0.6, sequence=1))])
        state.capacity.give(Allocation.of([Share(0, 1, 600)]))
        other = state.jobs["b"]
        state.claim(other, Allocation.of([Share(0, 1, 600)]))
        engine._nominated["b"] = other
        with pytest.raises(EngineError, match="device 0 of node n0 is used 1200 / 1000"):
            check(state, engine._nominated, 1)


def test_a_view_is_live() -> None:
    """Each step sees the one before."""
    seen: list[tuple[int, int, list[str]]] = []

    def look(view: ClusterView) -> None:
        holders = [job.job.id for job in view.holders]
        seen.append((view.capacity.free_milli, view.allocated.get("", 0), holders))

    policy = Told(ordering=Preemptive())
    engine = engine_of(policy, 2)
    run_at_once(engine, policy, [(job("a"), gpus(0, 0b01))])
    policy.steps = [both(look, stops("a"), look, starts("b", gpus(0, 0b11)), look)]
    engine.handle(1, [Submitted(job("b", 2, sequence=1))])
    assert seen == [(1000, 1000, ["a"]), (2000, 0, []), (0, 2000, ["b"])]


def test_undo_takes_steps_back_to_a_mark() -> None:
    policy = Told(ordering=Preemptive())
    engine = engine_of(policy, 2)
    run_at_once(engine, policy, [(job("a"), gpus(0, 0b01))])

    def think_twice(view: ClusterView) -> None:
        mark = view.mark()  # type: ignore[attr-defined]
        view.preempt(find(view, "a"))
        view.start(find(view, "b"), gpus(0, 0b11))
        view.undo(mark)  # type: ignore[attr-defined]

    policy.steps = [think_twice]
    assert engine.handle(1, [Submitted(job("b", 2, sequence=1))]) == []
    assert (engine.state.jobs["a"].phase, engine.state.jobs["b"].phase) == (Phase.RUNNING, Phase.PENDING)
    assert engine.state.jobs["a"].attained(5) == 5


def test_requests_that_are_alike_wait_in_one_class_in_order() -> None:
    engine = engine_of(Told(), 1)
    late, early = (Job(name, row, at, Request(1000)) for row, (name, at) in enumerate((("l", 9), ("e", 3))))
    engine.handle(10, [Submitted(late), Submitted(early), Submitted(job("other", 2, submit=1, sequence=2))])
    classes = list(engine._view.pending_classes)
    assert [[j.job.id for j in members] for members in classes] == [["e", "l"], ["other"]]
    assert [[j.job.id for j in members.ordered()] for members in classes] == [["e", "l"], ["other"]]
