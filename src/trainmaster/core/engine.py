"""The decision engine: events of one instant in, actions out. Nothing else.

There is no clock, no random source, no file and no thread in here; time comes with
the events and the random generator is an argument, so the simulator, the live
scheduler and a replay of its log run exactly the same code.

`handle` first applies all state changes of the instant in their declared order, then
asks the policy once. Actions are requests: what became of them comes back as events.
Outcomes that fall on the same instant form a follow-up batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from trainmaster.core.explain import explain, explain_all
from trainmaster.core.invariants import check
from trainmaster.core.plan import View
from trainmaster.core.state import NOMINATED, PENDING, RUNNING, STARTING, STOPPING, JobState, State
from trainmaster.model.action import Action, Kill, Start, Stop, Wake
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import FAILURES, EngineError, PolicyError, TrainmasterError
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Lost,
    NodeDown,
    NodeDrained,
    NodeUp,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.ports import Phase, Policy, Predictor
from trainmaster.model.reason import Reason


class Engine:
    """One scheduler.

    Args:
        cluster: its nodes.
        policy: who decides.
        predictor: what is known of run times.
        weights: entitlement by tenant; a tenant that isn't named weighs 1.
        seed: of the random generator that policies see.
        validate: re-check every invariant after each instant.
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        predictor: Predictor,
        *,
        weights: Mapping[str, float] | None = None,
        seed: int = 0,
        validate: bool = False,
    ) -> None:
        self.policy = policy
        self.predictor = predictor
        self.now = 0
        self.decisions = 0
        self.state = State(cluster, policy.ordering, by_tenant=policy.by_tenant, relax=policy.relax)
        self._view = View(self.state, policy.name, predictor, random.Random(seed), weights or {})
        self._validate = validate
        self._nominated: dict[str, JobState] = {}
        self._ask = False
        self._actions: list[Action] = []
        self._wake_at: int | None = None
        self._wake_version = 0
        self._woken = False
        # Estimates are worth their cost only where an order or a reservation reads them.
        self._estimates = policy.ordering.uses_estimates
        self._apply: dict[type[Event], Callable[[Any], None]] = {
            Submitted: self._submitted,
            Started: self._started,
            Stopped: self._stopped,
            Finished: self._finished,
            Failed: self._failed,
            Lost: self._lost,
            CheckpointWritten: self._checkpointed,
            Cancelled: self._cancelled,
            NodeDown: self._node_down,
            # Its jobs run on; what tells the two apart is whether they are reported lost.
            NodeDrained: self._node_down,
            NodeUp: self._node_up,
            Timer: self._timer,
        }

    def handle(self, now: int, events: Sequence[Event]) -> list[Action]:
        """Apply the events of instant `now`, decide, and return what is to be done.

        Args:
            now: the instant, ns; never earlier than that of the call before.
            events: all events of the instant, in the order of their rank.

        Raises:
            EngineError: time runs backwards, or an event does not fit the state.
            PolicyError: the policy planned something impossible; nothing of its plan
                is carried out.
        """
        if now < self.now:
            raise EngineError(f"time runs backwards: {now} after {self.now}")
        self.now = now
        self._actions = []
        apply = self._apply
        try:
            for event in events:
                apply[type(event)](event)
        except TrainmasterError:
            raise
        except FAILURES as error:  # the policy's ordering raised it, or the predictor
            raise self._failed_policy(error) from error
        if self._nominated and self.state.vacated:
            self._start_nominated(self._nominated.values())
        self.state.vacated = False
        if self._ask:
            self._decide()
        if self._validate:
            check(self.state, self._nominated, now)
        return self._actions

    def explain(self, job_id: str, *, hints: bool = True) -> Reason:
        """Why a job waits; nothing changes by that.

        Args:
            hints: whether to try out what would help.

        Raises:
            InputError: there is no such job, or it doesn't wait.
            PolicyError: the policy fails when it is asked.
        """
        return explain(self, job_id, hints=hints)

    def explain_all(self) -> dict[str, Reason]:
        """Why each waiting job waits, by id, without what would help.

        Raises:
            PolicyError: the policy fails when it is asked.
        """
        return explain_all(self)

    # -- state changes ----------------------------------------------------------------

    def _submitted(self, event: Submitted) -> None:
        job = event.job
        if job.id in self.state.jobs:
            raise EngineError(f"job {job.id} was submitted twice")
        state = JobState(job, self.now)
        self.state.jobs[job.id] = state
        if self._estimates:
            state.estimate = self.predictor.predict(job, 0, self.now)
        if job.not_before > self.now:
            self.state.held[job.id] = state
            self._actions.append(Wake(job.not_before, job.id, state.version))
        else:
            self._wait(state)

    def _started(self, event: Started) -> None:
        job = self.state.jobs.get(event.job_id)
        if job is None or job.phase is not STARTING:
            return  # it was stopped, lost or cancelled meanwhile
        assert job.allocation is not None
        speed = self.predictor.speed(job.job, job.allocation)
        self.state.run(job, self.now, speed, self.policy.min_run)
        self._set_timer(job)
        if self.policy.ordering.preemptive:
            self._weakened(job)  # nobody could displace it while it was starting

    def _stopped(self, event: Stopped) -> None:
        job = self._known(event.job_id)
        self.state.vacate(job, self.now)
        job.preemptions += 1
        self._wait_again(job)

    def _finished(self, event: Finished) -> None:
        job = self._known(event.job_id)
        self.state.vacate(job, self.now)
        job.phase = Phase.FINISHED
        if self._estimates:
            self.predictor.observe(job.job, job.time_run, self.now)
        self.policy.ordering.finished(job, self.now)
        del self.state.jobs[event.job_id]
        self._ask = True

    def _failed(self, event: Failed) -> None:
        job = self._known(event.job_id)
        self.state.vacate(job, self.now)
        job.phase = Phase.FAILED
        del self.state.jobs[event.job_id]
        self._ask = True

    def _lost(self, event: Lost) -> None:
        job = self._known(event.job_id)
        self.state.vacate(job, self.now)
        job.progress = event.kept
        self._wait_again(job)

    def _checkpointed(self, event: CheckpointWritten) -> None:
        self._known(event.job_id)

    def _cancelled(self, event: Cancelled) -> None:
        job = self._known(event.job_id)
        self._ask = True
        if job.phase is PENDING or job.phase is NOMINATED:
            if job.phase is NOMINATED:
                self.state.vacate(job, self.now)
                del self._nominated[event.job_id]
            elif self.state.held.pop(event.job_id, None) is None:
                self.state.withdraw(job)
            job.phase = Phase.CANCELLED
            del self.state.jobs[event.job_id]
            return
        if job.phase is not STOPPING:
            self.state.release(job, self.now)
            assert job.allocation is not None
            self.state.improve(job.allocation)
        job.cancelled = True
        self._actions.append(Kill(event.job_id))

    def _node_down(self, event: NodeDown | NodeDrained) -> None:
        self.state.capacity.set_up(event.node, False)
        self.state.touched.add(event.node)
        for name, job in list(self.state.by_node[event.node].items()):
            if job.phase is NOMINATED:
                self.state.unclaim(job, self.now)
                del self._nominated[name]
        self._ask = True

    def _node_up(self, event: NodeUp) -> None:
        self.state.capacity.set_up(event.node, True)
        self.state.touched.add(event.node)
        self.state.improved.add(event.node)
        self._ask = True

    def _timer(self, event: Timer) -> None:
        if event.job_id is None:
            if event.version == self._wake_version:
                self._wake_at = None
                self._woken = self._ask = True
            return
        job = self.state.jobs.get(event.job_id)
        if job is None or job.version != event.version:
            return
        if job.phase is PENDING:
            if self.state.held.pop(event.job_id, None) is not None:
                self._wait(job)
            else:
                self.state.requeue(job, relaxed=True)
            self._ask = True
        elif job.phase is RUNNING:
            if self._estimates and not self.predictor.exact and job.remaining(self.now) == 0:
                job.estimate = self.predictor.predict(job.job, job.attained(self.now), self.now)
            self.state.rekey(job, self.now)
            assert job.allocation is not None
            self.state.improve(job.allocation)
            self._set_timer(job)
            self._weakened(job)

    # -- helpers ----------------------------------------------------------------------

    def _known(self, job_id: str) -> JobState:
        job = self.state.jobs.get(job_id)
        if job is None:
            raise EngineError(f"an event names job {job_id}, which is not in the system")
        return job

    def _wait(self, job: JobState) -> None:
        now = self.now
        job.pending_since = now
        self.state.enqueue(job, now)
        if self.policy.relax is not None:
            self._actions.append(Wake(now + self.policy.relax, job.job.id, job.version))
        self._ask = True

    def _wait_again(self, job: JobState) -> None:
        """The job holds no GPU any more: it waits, unless it was withdrawn meanwhile."""
        if job.cancelled:
            job.phase = Phase.CANCELLED
            del self.state.jobs[job.job.id]
            self._ask = True
        else:
            self._wait(job)

    def _set_timer(self, job: JobState) -> None:
        at = self.policy.ordering.next_change(job, self.now)
        if self._estimates and not self.predictor.exact:
            end = job.expected_end(self.now)
            at = end if at is None else min(at, end)
        if at is not None and at > self.now:
            self._actions.append(Wake(at, job.job.id, job.version))

    def _weakened(self, job: JobState) -> None:
        """Ask the policy about a job that became weaker, as soon as it may be stopped; not if
        it is no weaker than those who wait."""
        challenge = self._view.release_challenge
        if not self.policy.ordering.preemptive:
            self._ask = True
        elif challenge is not None and job.running_key > challenge:
            if job.protected_until > self.now:
                self._wake(job.protected_until)
            else:
                self._ask = True

    def _decide(self) -> None:
        """Ask the policy, now or at the next round."""
        now = self.now
        if self.policy.round and now % self.policy.round:
            self._wake(now - now % self.policy.round + self.policy.round)
            return
        self._ask = False
        self.decisions += 1
        view = self._view
        view.begin(now)
        challenge = view.release_challenge
        try:
            self.policy.plan(view)
        except BaseException as error:
            view.undo()
            if isinstance(error, TrainmasterError) or not isinstance(error, FAILURES):
                raise
            raise self._failed_policy(error) from error
        for job in view.preempted:
            self._actions.append(Stop(job.job.id))
        for job in view.started:
            self._nominated[job.job.id] = job
        if view.started:
            self._start_nominated(view.started)
        if view.wake_at is not None:
            self._wake(view.wake_at)
        # The wake-up that is set is for the first release, unless one just passed.
        if view.release_challenge is not None and (
            self._woken or self._wake_at is None or view.release_challenge != challenge
        ):
            self._woken = False
            at = self.state.next_release(view.release_challenge)
            if at is not None:
                self._wake(at)

    def _start_nominated(self, jobs: Collection[JobState]) -> None:
        """Start those of the nominated jobs whose GPUs are empty, first come first served."""
        capacity = self.state.capacity
        for job in tuple(jobs):
            allocation = job.allocation
            assert allocation is not None
            if capacity.startable(allocation):
                del self._nominated[job.job.id]
                self.state.ask_start(job, self.now, self.policy.min_run)
                self._actions.append(Start(job.job.id, allocation))

    def _failed_policy(self, error: BaseException) -> PolicyError:
        return PolicyError(f"policy {self.policy.name}: at {self.now / 1e9} s: {_where(error)}")

    def _wake(self, at: int) -> None:
        if self._wake_at is not None and self._wake_at <= at:
            return
        self._wake_at = at
        self._wake_version += 1
        self._actions.append(Wake(at, None, self._wake_version))


def _where(error: BaseException) -> str:
    """An error in somebody's policy and the line that raised it, in one line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


def replay(engine: Engine, log: Iterable[tuple[int, Sequence[Event]]]) -> list[list[Action]]:
    """Feed a recorded log to a fresh engine; the actions must be those of the record."""
    return [engine.handle(now, events) for now, events in log]
