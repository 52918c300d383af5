"""The view that a policy decides on, and the journal of its decision.

Each step is validated when it is taken and changes the state at once, so that the
next step sees it. A decision that fails half-way is taken back step by step: an
eviction is only ever made together with what it was made for.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from trainmaster.core.accounts import Account
from trainmaster.core.capacity import Capacity
from trainmaster.core.state import PENDING, RUNNING, JobState, PendingJobs, State
from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import PolicyError
from trainmaster.model.ports import ANYBODY, JobView, Predictor
from trainmaster.model.units import GPU


class View:
    """Implements `ClusterView` on the live state; see `trainmaster.model.ports`."""

    __slots__ = (
        "_journal",
        "_policy",
        "_state",
        "capacity",
        "cluster",
        "now",
        "predictor",
        "preempted",
        "release_challenge",
        "rng",
        "started",
        "wake_at",
        "weights",
    )

    def __init__(
        self,
        state: State,
        policy: str,
        predictor: Predictor,
        rng: random.Random,
        weights: Mapping[str, float],
    ) -> None:
        self._state = state
        self._policy = policy
        self.capacity: Capacity = state.capacity
        self.cluster: Cluster = state.cluster
        self.predictor = predictor
        self.rng = rng
        self.weights = weights
        self.now = 0
        self._journal: list[tuple[JobState, tuple[int, int, int] | None]] = []
        self.started: list[JobState] = []
        self.preempted: list[JobState] = []
        self.wake_at: int | None = None
        # Until the policy says for whom it waits, it waits for anybody.
        self.release_challenge: int | None = ANYBODY

    def begin(self, now: int) -> None:
        """Start an empty plan at `now`."""
        self.now = now
        self._state.expire(now)
        self._journal.clear()
        self.started = []
        self.preempted = []
        self.wake_at = None

    # -- what a policy sees -----------------------------------------------------------

    @property
    def pending_classes(self) -> Iterator[PendingJobs]:
        """The classes that have pending jobs, in a fixed order."""
        queued = self._state.queued
        for members in tuple(queued):
            if members.head() is None:
                del queued[members]
            else:
                yield members

    def fresh(self) -> Collection[PendingJobs]:
        """The classes that jobs were queued in since the last call."""
        classes = self._state.fresh.keys()
        if classes:
            self._state.fresh = {}
        return classes

    @property
    def running(self) -> Collection[JobState]:
        """Jobs in phase RUNNING, in the order in which they began."""
        return self._state.running.values()

    @property
    def holders(self) -> Collection[JobState]:
        """Jobs that hold GPUs or have been promised some, and are not stopping."""
        return self._state.holders.values()

    @property
    def running_order(self) -> Sequence[tuple[int, JobState]]:
        """RUNNING jobs by key; see the port."""
        assert self._state.order is not None
        return self._state.order.entries

    def on_node(self, node: int) -> Iterable[JobState]:
        """Jobs that hold GPUs of this node or have been promised them."""
        return self._state.by_node[node].values()

    def improved(self) -> set[int]:
        """Nodes that changed to the good of those who wait, since the last call."""
        nodes = self._state.improved
        self._state.improved = set()
        return nodes

    def touched(self) -> set[int]:
        """Nodes that changed since the last call."""
        nodes = self._state.touched
        self._state.touched = set()
        return nodes

    @property
    def allocated(self) -> Mapping[str, int]:
        """Milli-GPUs of the holders by tenant."""
        return self._state.allocated

    @property
    def tenants(self) -> Mapping[str, Account]:
        """What tenants hold and wait for; see the port."""
        return self._state.accounts

    # -- steps ------------------------------------------------------------------------

    def start(self, job: JobView, allocation: Allocation) -> None:
        """Promise `allocation` to a pending job; it starts as soon as it is empty.

        Raises:
            PolicyError: the job isn't pending, the GPUs aren't free, or they aren't what
                the job asks for.
        """
        state = self._own(job)
        if state.phase is not PENDING:
            raise self._error(state, f"can't start, it is {state.phase.value}")
        asked = state.job.request.gpus
        if allocation.milli != asked:
            raise self._error(state, f"asks {asked / GPU:g} GPUs and was given {allocation.milli / GPU:g}")
        fault = self.capacity.fault(allocation, state.job.request)
        if fault:
            raise self._error(state, fault)
        try:
            self._state.claim(state, allocation)
        except PolicyError as error:
            raise self._error(state, str(error)) from None
        self._journal.append((state, None))
        self.started.append(state)

    def preempt(self, job: JobView) -> None:
        """Ask a running job to stop; its GPUs count as free from now on.

        Raises:
            PolicyError: the job isn't running, is protected, or must not be preempted.
        """
        state = self._own(job)
        if state.phase is not RUNNING:
            raise self._error(state, f"can't be stopped, it is {state.phase.value}")
        if not state.job.request.preemptible:
            raise self._error(state, "can't be stopped, it is not preemptible")
        if state.protected_until > self.now:
            raise self._error(state, "can't be stopped yet, it is protected by the minimum run time")
        self._journal.append((state, (state.running_since, state.time_run, state.progress)))
        self._state.release(state, self.now)
        self.preempted.append(state)

    def wake(self, at: int) -> None:
        """Ask the policy again at `at` at the latest, ns."""
        if at <= self.now:
            raise PolicyError(f"policy {self._policy}: asks to be woken at {at}, which is not after now")
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at

    def wake_on_release(self, challenge: int | None) -> None:
        """Ask the policy again whenever a weaker job loses its protection; see the port."""
        self.release_challenge = challenge

    # -- taking back ------------------------------------------------------------------

    def mark(self) -> int:
        """A point of the journal to return to with `undo`."""
        return len(self._journal)

    def undo(self, mark: int = 0) -> None:
        """Take back all steps since `mark`, last first."""
        while len(self._journal) > mark:
            state, saved = self._journal.pop()
            if saved is None:
                self.started.pop()
                self._state.unclaim(state, self.now)
            else:
                self.preempted.pop()
                self._state.unrelease(state, *saved)

    def _own(self, job: JobView) -> JobState:
        if not isinstance(job, JobState):
            raise PolicyError(f"policy {self._policy}: {job!r} is not a job of this view")
        return job

    def _error(self, state: JobState, what: str) -> PolicyError:
        return PolicyError(f"policy {self._policy}: job {state.job.id}: {what}")
