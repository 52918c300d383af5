"""One part of a case under one policy: the engine, the virtual cluster and its clock, and the steps
that the case makes happen. Every invariant is checked at every instant."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from trainmaster.core.engine import Engine
from trainmaster.core.snapshot import capture, restore
from trainmaster.model.action import Action, Stop
from trainmaster.model.allocation import Allocation
from trainmaster.model.errors import TrainmasterError
from trainmaster.model.event import Cancelled, Event, Finished, NodeDown, NodeDrained, NodeUp
from trainmaster.model.job import Job, Request
from trainmaster.model.units import to_seconds
from trainmaster.policies.base import Policy
from trainmaster.policies.registry import Specification, create
from trainmaster.predict.choose import make_predictor
from trainmaster.sim.clock import Clock
from trainmaster.sim.options import Costs
from trainmaster.sim.run import next_batch
from trainmaster.sim.virtual_cluster import VirtualCluster
from trainmaster.testing.scenario_account import Account, InvariantError
from trainmaster.testing.scenario_invariants import Decisions
from trainmaster.testing.scenario_model import ENDED, CaseJob, Scene, Step

MAX_INSTANTS = 100_000
"""No case needs more batches; a policy that wakes itself for ever is ended."""

RESTARTS = {"snapshot": ("memory", "learned"), "restart": ()}
"""Steps after which another engine goes on, and what it knows beside the jobs: what policy and
predictor remember."""

FREE = {"checkpoint_s": 0.0, "restore_s": 0.0, "start_s": 0.0}


class StepError(TrainmasterError):
    """A step of the case doesn't fit what has happened so far."""


def request_of(job: CaseJob) -> Request:
    """What a case says of a gang, as the engine is told it. The one place that knows."""
    return Request(
        job.milli,
        job.type,
        preemptible=job.preemptible,
        pods=None if job.pods is None else job.pods[0],
        labels=tuple(sorted(job.extra.get("labels", {}).items())),
        within=job.extra.get("within", ""),
    )


class CaseCluster(VirtualCluster):
    """The virtual cluster, with jobs that take a time of their own to stop."""

    def __init__(
        self,
        clock: Clock,
        duration: Callable[[Job], int],
        costs: Costs,
        speed: Callable[[Job, Allocation], float] | None,
        stops_in: Mapping[str, int],
    ) -> None:
        super().__init__(clock, duration, costs, speed)
        self._stops_in = stops_in

    def carry_out(self, now: int, actions: Sequence[Action]) -> None:
        """See `VirtualCluster`."""
        for action in actions:
            if isinstance(action, Stop) and action.job_id in self._stops_in:
                self._stop(now, action.job_id, self._stops_in[action.job_id])
            else:
                super().carry_out(now, (action,))


class Play:
    """A part of a case on its way.

    Args:
        scene: what it is; all it needs must be there.
        policy: specification.
        placement: one of the scene's.

    Attributes:
        account: the cluster as its executor sees it.
        engine: the scheduler.
        log: (now, events) of every batch, and the actions that they led to.
    """

    def __init__(self, scene: Scene, policy: Specification, placement: str) -> None:
        self.scene = scene
        self.placement = placement
        self._specification = policy
        self._jobs = [self._job(row, job) for row, job in enumerate(scene.jobs)]
        self.engine = self._engine()
        self.clock = Clock(self._jobs)
        durations = [job.runs for job in scene.jobs]
        stops_in = {job.name: job.stops_in for job in scene.jobs if job.stops_in is not None}
        self.executor = CaseCluster(
            self.clock,
            lambda job: durations[job.sequence],
            Costs(**{**FREE, **scene.costs}),
            self._speed if any(job.speed for job in scene.jobs) else None,
            stops_in,
        )
        self.account = Account(self.engine.state.cluster, {job.name: job for job in scene.jobs})
        self.decisions = Decisions(self.engine, self.account)
        self.log: list[tuple[int, list[Event]]] = []
        self.answers: list[list[Action]] = []
        self._restarts = sorted((step for step in scene.steps if step.verb in RESTARTS), key=lambda s: s.at)
        for step in scene.steps:
            for event in self._events(step):
                self.clock.announce(step.at, event)

    def instants(self) -> Iterator[tuple[int, int | None]]:
        """Play on; yields (now, next instant) whenever all of an instant has happened, at first
        (-1, first instant).

        Raises:
            InvariantError: an invariant does not hold.
            TrainmasterError: the policy planned something impossible, or the engine is wrong.
        """
        yield -1, self.clock.next_instant()
        while (now := self._next()) is not None:
            while self._restarts and self._restarts[0].at < now:
                self._go_on_from_state(RESTARTS[self._restarts.pop(0).verb])
            self._handle(now)
            following = self.clock.next_instant()
            if following is None or following > now:
                self.decisions.settled()
                yield now, following
            if len(self.log) > MAX_INSTANTS:
                raise InvariantError(
                    f"I5: no end after {MAX_INSTANTS} instants: decisions never come to rest"
                )

    def check_replay(self) -> None:
        """I7: a fresh engine that is fed the recorded events asks for the same actions.

        Raises:
            InvariantError: it asks for others.
        """
        engine = self._engine()
        for (now, events), ours in zip(self.log, self.answers, strict=True):
            theirs = engine.handle(now, events)
            if ours != theirs:
                raise InvariantError(
                    f"I7: replayed from the log, at {to_seconds(now):g} s the engine asks for {theirs}, "
                    f"not for {ours}"
                )

    def text(self) -> str:
        """Everything that happened and was asked for."""
        pairs = zip(self.log, self.answers, strict=True)
        return "\n".join(f"{now} {[str(e) for e in events]} {answer}" for (now, events), answer in pairs)

    # -- inside -------------------------------------------------------------------------------------

    def _next(self) -> int | None:
        now = self.clock.next_instant()
        if now is None or (self.scene.until is not None and now > self.scene.until):
            return None
        return None if all(state in ENDED for state in self.account.state.values()) else now

    def _go_on_from_state(self, kept: Collection[str]) -> None:
        """Another engine takes over, which knows what a state file would tell it."""
        state: dict[str, Any] = json.loads(json.dumps(capture(self.engine)))
        state["memory"] = state["memory"] if "memory" in kept else {}
        state["learned"] = state["learned"] if "learned" in kept else []
        self.engine = self._engine()
        restore(self.engine, state)
        self.decisions = Decisions(self.engine, self.account)

    def _handle(self, now: int) -> None:
        batch = next_batch(self.clock, self.executor, now)
        self._check_steps(now, batch)
        self.account.happen(now, batch)
        self.decisions.begin(now, batch)
        actions = list(self.engine.handle(now, batch))
        self.log.append((now, batch))
        self.answers.append(actions)
        self.decisions.check(actions)
        self.account.carry_out(now, actions)
        if actions:
            self.executor.carry_out(now, actions)

    def _check_steps(self, now: int, batch: Sequence[Event]) -> None:
        """Refuse to cancel what has ended: only the case can be wrong there."""
        ending = {event.job_id: "finished" for event in batch if isinstance(event, Finished)}
        for event in batch:
            if isinstance(event, Cancelled):
                state = ending.get(event.job_id, self.account.state[event.job_id])
                if state in (*ENDED, "unsubmitted"):
                    raise StepError(f"{event.job_id} can't be cancelled at {to_seconds(now):g} s: {state}")

    def _events(self, step: Step) -> list[Event]:
        nodes = self.scene.cluster.names
        if step.verb in RESTARTS:
            return []
        if step.verb == "cancel":
            return [Cancelled(name) for name in step.names]
        if step.verb == "fail":
            return [NodeDown(nodes[name]) for name in step.names]
        if step.verb == "drain":
            return [NodeDrained(nodes[name]) for name in step.names]
        assert step.verb == "return", f"{step.verb} needs a feature that isn't there"
        return [NodeUp(nodes[name]) for name in step.names]

    def _job(self, row: int, job: CaseJob) -> Job:
        return Job(
            job.name,
            row,
            job.at,
            request_of(job),
            job.queue,
            job.user,
            job.priority,
            job.limit,
            min_run=job.extra.get("min_run"),
            not_before=job.extra.get("not_before", 0),
        )

    def _engine(self) -> Engine:
        scene = self.scene
        cluster = scene.cluster.as_pool() if self.placement == "pool" else scene.cluster
        estimates = [job.runs if job.estimate is None else job.estimate for job in scene.jobs]
        speeds = {"speed": self._speed} if any(job.speed for job in scene.jobs) else {}
        predictor = make_predictor(
            scene.predictor, lambda job: estimates[job.sequence], seed=scene.seed, **speeds
        )
        return Engine(
            cluster, self._policy(), predictor, weights=scene.weights, seed=scene.seed, validate=True
        )

    def _policy(self) -> Policy:
        return make_policy(self.scene, self._specification, self.placement)

    def _speed(self, job: Job, allocation: Allocation) -> float:
        speeds = self.scene.jobs[job.sequence].speed
        types = [self.scene.cluster.nodes[node].gpu_type for node in allocation.nodes]
        return min(speeds.get(name, 1.0) for name in types)


def make_policy(scene: Scene, specification: Specification, placement: str) -> Policy:
    """A fresh policy with the settings of the case; knobs in the specification win."""
    defaults: dict[str, float] = {}
    if scene.min_run is not None:
        defaults["min_run_s"] = to_seconds(scene.min_run)
    if scene.round:
        defaults["round_s"] = to_seconds(scene.round)
    relax_s = None if scene.relax is None else to_seconds(scene.relax)
    return create(specification, placement=placement, relax_s=relax_s, defaults=defaults)
