"""Why jobs wait: a view to look at, and scratch copies of the engine to try things out.

The policy knows why it leaves a job waiting; here it is asked, on the live state, which
stays as it is. What would help is not argued but tried: a copy of the whole engine decides
again, with the job asking for something else.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from trainmaster.core.capacity import Capacity, capacity_of
from trainmaster.core.plan import View
from trainmaster.core.state import NOMINATED, PENDING, STARTING, JobState, PendingJobs, State
from trainmaster.model.allocation import Allocation
from trainmaster.model.errors import FAILURES, InputError, PolicyError, TrainmasterError, nearest
from trainmaster.model.event import Event
from trainmaster.model.job import Request
from trainmaster.model.ports import JobView, Phase, Predictor
from trainmaster.model.reason import Hint, Proposal, Reason
from trainmaster.model.units import to_gpus

if TYPE_CHECKING:
    from trainmaster.core.engine import Engine

T = TypeVar("T")

GIVEN = (NOMINATED, STARTING)
"""Phases of a job that has been given GPUs."""


class Look(View):
    """Implements `trainmaster.model.reason.Glance`: the live state, on which nothing can be done."""

    def __init__(
        self, state: State, policy: str, predictor: Predictor, weights: Mapping[str, float], now: int
    ) -> None:
        super().__init__(state, policy, predictor, random.Random(0), weights)
        self.now = now

    @cached_property
    def empty(self) -> Capacity:
        """See `Glance`."""
        return capacity_of(self.cluster)

    def relaxed(self, job: JobView) -> bool:
        """See `Glance`."""
        members = self._own(job).members
        return members is not None and members.relaxed

    @property
    def pending_classes(self) -> Iterator[PendingJobs]:
        """See the port; classes whose jobs are gone are passed over and kept."""
        return (members for members in self._state.queued if next(iter(members), None) is not None)

    def fresh(self) -> Collection[PendingJobs]:
        """As if this were the first call."""
        return list(self.pending_classes)

    def improved(self) -> set[int]:
        """As if this were the first call."""
        return set(range(len(self.cluster.nodes)))

    def touched(self) -> set[int]:
        """As if this were the first call."""
        return set(range(len(self.cluster.nodes)))

    def _refuse(self, *_: object) -> NoReturn:
        raise PolicyError(f"policy {self._policy}: takes a step while it is asked why a job waits")

    def begin(self, now: int) -> None:
        """No plan begins here."""
        self._refuse()

    def start(self, job: JobView, allocation: Allocation) -> None:
        """No step is taken here."""
        self._refuse()

    def preempt(self, job: JobView) -> None:
        """No step is taken here."""
        self._refuse()

    def wake(self, at: int) -> None:
        """No step is taken here."""
        self._refuse()

    def wake_on_release(self, challenge: int | None) -> None:
        """No step is taken here."""
        self._refuse()


def waiting(engine: Engine) -> list[JobState]:
    """Jobs that hold no GPU and have not ended, in order of submission."""
    return [job for job in engine.state.jobs.values() if job.phase is PENDING or job.phase is NOMINATED]


def explain(engine: Engine, job_id: str, *, hints: bool = True) -> Reason:
    """Why one job waits, and (with `hints`) what would help.

    Raises:
        InputError: there is no such job, or it doesn't wait.
        PolicyError: the policy fails when it is asked.
    """
    job = engine.state.jobs.get(job_id)
    if job is None:
        raise InputError(
            f"there is no job {job_id!r}", mend=nearest(job_id, (w.job.id for w in waiting(engine)))
        )
    if job.phase is not PENDING and job.phase is not NOMINATED:
        raise InputError(f"job {job_id} is {job.phase.value}: only a job that waits has a reason to")
    look = _look(engine)
    reason = _asked(engine, lambda: engine.policy.explain(look, job))
    if not hints:
        return reason
    proposals = _asked(engine, lambda: engine.policy.proposals(look, job, reason))
    return replace(reason, hints=tuple(_tried(engine, job, proposals)))


def explain_all(engine: Engine) -> dict[str, Reason]:
    """Why each waiting job waits, by id, without hints. What jobs have in common is worked out once.

    Raises:
        PolicyError: the policy fails when it is asked.
    """
    jobs = waiting(engine)
    look = _look(engine)
    reasons = _asked(engine, lambda: engine.policy.explain_all(look, jobs))
    return {job.job.id: reason for job, reason in zip(jobs, reasons, strict=True)}


def _look(engine: Engine) -> Look:
    view = engine._view
    return Look(engine.state, engine.policy.name, engine.predictor, view.weights, engine.now)


def _asked(engine: Engine, question: Callable[[], T]) -> T:
    """The policy's answer; what it raises is its error."""
    try:
        return question()
    except TrainmasterError:
        raise
    except FAILURES as error:
        raise engine._failed_policy(error) from error


# -- trying ----------------------------------------------------------------------------------------


def _tried(engine: Engine, job: JobState, proposals: Sequence[Proposal]) -> Iterator[Hint]:
    """Those of the proposals that hold."""
    for proposal in proposals:
        options = proposal.options
        phases: dict[int, Phase] = {}
        # The options from `high` on would start, those before `low` would not.
        low, high = 0, len(options)
        while low < high:
            middle = (low + high) // 2
            phases[middle] = _phase_if(engine, job.job.id, options[middle], proposal.relaxed, proposal.events)
            if phases[middle] in GIVEN:
                high = middle
            else:
                low = middle + 1
        if high < len(options):
            when = "now" if not engine.policy.round else "at the next decision"
            if phases[high] is not STARTING:
                when = "as soon as others have stopped for it"
            yield _hint(proposal, job.job.request, options[high], f"would start {when}")


def would_start(engine: Engine, job_id: str, request: Request, *, relaxed: bool = False) -> bool:
    """Whether a waiting job would be given GPUs now if it asked this instead: a copy of the engine decides.

    It is expected to run as long as before.

    Args:
        relaxed: whether any nodes would do.
    """
    return _phase_if(engine, job_id, request, relaxed) in GIVEN


def _phase_if(
    engine: Engine, job_id: str, request: Request, relaxed: bool, events: Sequence[Event] = ()
) -> Phase:
    twin = _copy(engine)
    state, now = twin.state, twin.now
    job = state.jobs[job_id]
    if job.phase is not PENDING or job_id in state.held:
        return PENDING
    if request != job.job.request:
        state.withdraw(job)
        job.job = replace(job.job, request=request)
        job.gpus, job.members = request.gpus, None
        state.enqueue(job, now)
    if relaxed:
        state.requeue(job, relaxed=True)
    twin.policy.round = 0
    twin._ask = True
    twin.handle(now, events)
    return job.phase


def _copy(engine: Engine) -> Engine:
    """A scratch copy; what never changes is shared.

    Raises:
        PolicyError: the policy holds what can't be copied.
    """
    shared: dict[int, Any] = {id(engine.state.cluster): engine.state.cluster}
    for job in engine.state.jobs.values():
        shared[id(job.job)] = job.job
        shared[id(job.estimate)] = job.estimate
        if job.allocation is not None:
            shared[id(job.allocation)] = job.allocation
    for members in engine.state.classes.values():
        shared[id(members.request)] = members.request
    try:
        return copy.deepcopy(engine, shared)
    except FAILURES as error:
        raise engine._failed_policy(error) from error


def _hint(proposal: Proposal, asked: Request, instead: Request, would: str) -> Hint:
    """What would help, in words."""
    change, names = proposal.change, proposal.names
    if change == "gpus":
        few, many = to_gpus(instead.gpus), to_gpus(asked.gpus)
        numbers = {"asked_gpus": asked.gpus, "instead_gpus": instead.gpus}
        return Hint(change, f"{would} if it asked {few} instead of {many} GPUs", numbers)
    if change == "pods":
        numbers = {"asked_pods": asked.pods or 0, "instead_pods": instead.pods or 0}
        return Hint(change, f"{would} with {instead.pods} instead of {asked.pods} pods", numbers)
    if change == "pod_gpus":
        few, many = to_gpus(instead.pod), to_gpus(asked.pod)
        numbers = {"asked_gpus": asked.pod, "instead_gpus": instead.pod}
        return Hint(change, f"{would} if each of its pods asked {few} instead of {many} GPUs", numbers)
    some = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    conditions = {
        "gpu_types": "on any type of GPU",
        "labels": "on nodes without the labels that it names",
        "within": f"if it need not stay within one {asked.within}",
        "nodes": "if it accepted any nodes",
        "jobs_end": f"if {some} ended",
        "nodes_return": f"if {some} took jobs again",
        "job_withdrawn": f"if {some} were withdrawn",
    }
    return Hint(change, f"{would} {conditions[change]}", names=names)
