"""Everything the engine knows: jobs in their phases, queues, capacity, accounts.

The state changes only here, by methods named after what happens to a job. The
engine calls them for events; the plan calls them for decisions, and keeps a journal
so that a decision can be taken back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import ceil
from typing import NoReturn, cast

from trainmaster.core.accounts import Account
from trainmaster.core.capacity import Capacity, capacity_of
from trainmaster.core.running import RunningOrder
from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import PolicyError
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Estimate, Ordering, Phase

PENDING, NOMINATED, STARTING = Phase.PENDING, Phase.NOMINATED, Phase.STARTING
RUNNING, STOPPING = Phase.RUNNING, Phase.STOPPING

NEVER = -1
"""An instant that has not come."""

NO_TICKET = 0
"""The ticket of a job that is not queued."""


class _Unpredicted:
    """Stands where nobody asked for an estimate; to read it is an error, not a zero.

    An object that raises when it is used costs nothing where estimates are read right.
    """

    def _refuse(self, *_: object) -> NoReturn:
        raise PolicyError(
            "an estimate is read (job.estimate, remaining or expected_end), but no job has one: "
            "set `uses_estimates = True` on the ordering"
        )

    total = spread = property(_refuse)
    __iter__ = __getitem__ = __len__ = _refuse

    def __repr__(self) -> str:
        return "no estimate"


UNKNOWN = cast(Estimate, _Unpredicted())
"""The estimate of a job under an ordering that doesn't declare `uses_estimates`."""


class JobState:
    """One job and what the scheduler knows of it. Implements `JobView`."""

    __slots__ = (
        "allocation",
        "attempts",
        "cancelled",
        "estimate",
        "gpus",
        "job",
        "members",
        "pending_key",
        "pending_since",
        "phase",
        "preemptions",
        "progress",
        "protected_until",
        "running_key",
        "running_since",
        "speed",
        "started_at",
        "ticket",
        "time_run",
        "version",
    )

    def __init__(self, job: Job, now: int) -> None:
        self.job = job
        self.gpus = job.request.gpus
        self.phase = PENDING
        self.allocation: Allocation | None = None
        self.estimate = UNKNOWN
        self.pending_since = now
        self.pending_key = 0
        self.members: PendingJobs | None = None
        self.ticket = NO_TICKET
        self.running_key = 0
        self.running_since = NEVER
        self.started_at = NEVER
        self.protected_until = 0
        self.time_run = 0
        self.progress = 0
        self.speed = 1.0
        self.attempts = 0
        self.preemptions = 0
        self.cancelled = False
        self.version = 0

    def __repr__(self) -> str:
        return f"<{self.job.id} {self.phase.value}>"

    def __lt__(self, other: JobState) -> bool:
        return self.job.sequence < other.job.sequence

    @property
    def ran(self) -> bool:
        """Whether it has ever been started."""
        return self.attempts > 0

    def attained(self, now: int) -> int:
        """Time spent running so far, ns."""
        return self.time_run + (now - self.running_since if self.running_since >= 0 else 0)

    def done(self, now: int) -> int:
        """Work done so far at reference speed, ns."""
        if self.running_since < 0:
            return self.progress
        elapsed = now - self.running_since
        return self.progress + (elapsed if self.speed == 1.0 else int(elapsed * self.speed))

    def remaining(self, now: int) -> int:
        """Predicted work left at reference speed, ns; at least 0."""
        return max(0, self.estimate.total - self.done(now))

    def expected_end(self, now: int) -> int:
        """Predicted end if left alone on its GPUs, ns; at least `now`."""
        left = self.remaining(now)
        # Rounded up, so that nothing is left at that instant.
        return now + (left if self.speed == 1.0 else ceil(left / self.speed))

    def pause(self, now: int) -> None:
        """Stop the progress clock."""
        if self.running_since >= 0:
            self.progress = self.done(now)
            self.time_run += now - self.running_since
            self.running_since = NEVER


class PendingJobs:
    """The pending jobs of one class, as a heap with lazy deletion.

    An entry counts while its ticket is the job's current one, so a job that left and
    came back under the same key is never seen twice.
    """

    __slots__ = ("_heap", "relaxed", "request", "tenant")

    def __init__(self, request: Request, tenant: str, relaxed: bool) -> None:
        self.request = request
        self.tenant = tenant
        self.relaxed = relaxed
        self._heap: list[tuple[int, int, JobState]] = []

    def add(self, job: JobState) -> None:
        """Queue a job under its pending key and ticket."""
        heappush(self._heap, (job.pending_key, job.ticket, job))

    def head(self) -> JobState | None:
        """The first job still pending, or None."""
        heap = self._heap
        while heap:
            _, ticket, job = heap[0]
            if job.ticket == ticket:
                return job
            heappop(heap)
        return None

    def __iter__(self) -> Iterator[JobState]:
        """The jobs still pending, first to last; costs only as much as is read.

        Walks the heap best first and leaves it as it is; the queue must not change
        meanwhile.
        """
        heap = self._heap
        frontier = [(heap[0][0], heap[0][1], 0)] if heap else []
        while frontier:
            _, ticket, index = heappop(frontier)
            job = heap[index][2]
            if job.ticket == ticket:
                yield job
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child][0], heap[child][1], child))

    def ordered(self) -> Sequence[JobState]:
        """All jobs still pending, first to last."""
        self._heap = sorted(entry for entry in self._heap if entry[2].ticket == entry[1])
        return [entry[2] for entry in self._heap]


class State:
    """The whole state of one scheduler."""

    def __init__(self, cluster: Cluster, ordering: Ordering, *, by_tenant: bool, relax: int | None) -> None:
        self.cluster = cluster
        self.capacity: Capacity = capacity_of(cluster)
        self.jobs: dict[str, JobState] = {}
        self.classes: dict[tuple[Request, str, bool, int], PendingJobs] = {}
        # Pending jobs that must not start yet, by id.
        self.held: dict[str, JobState] = {}
        self.queued: dict[PendingJobs, None] = {}
        self.fresh: dict[PendingJobs, None] = {}
        self.running: dict[str, JobState] = {}
        self.holders: dict[str, JobState] = {}
        self.by_node: list[dict[str, JobState]] = [{} for _ in cluster.nodes]
        self.allocated: dict[str, int] = {}
        # Only for policies that keep tenants apart.
        self.accounts: dict[str, Account] = {}
        self.touched: set[int] = set()
        self.improved: set[int] = set()
        self.vacated = False
        # (end of protection, version, job), in order.
        self.protected: deque[tuple[int, int, JobState]] = deque()
        self.order: RunningOrder | None = (
            RunningOrder() if ordering.preemptive and ordering.stable and cluster.pooled else None
        )
        self._ordering = ordering
        self._by_tenant = by_tenant
        self._relax = relax
        self._tickets = NO_TICKET

    # -- queueing -------------------------------------------------------------------

    def enqueue(self, job: JobState, now: int) -> None:
        """The job waits from now on (or again, under a new key)."""
        job.phase = PENDING
        job.pending_key = self._ordering.pending_key(job, now)
        relaxed = self._relax is not None and now - job.pending_since >= self._relax
        if self._by_tenant:
            self._account(job).waiting += job.gpus
        self.requeue(job, relaxed)

    def withdraw(self, job: JobState) -> None:
        """A pending job waits no longer."""
        job.ticket = NO_TICKET
        if self._by_tenant:
            self._account(job).waiting -= job.gpus

    def requeue(self, job: JobState, relaxed: bool) -> None:
        """Put a pending job into its class under the key that it has."""
        members = job.members
        if members is None or members.relaxed is not relaxed:
            tenant = job.job.tenant if self._by_tenant else ""
            name = (job.job.request, tenant, relaxed, self._ordering.apart(job))
            members = self.classes.get(name)
            if members is None:
                members = self.classes[name] = PendingJobs(job.job.request, tenant, relaxed)
            job.members = members
        self._tickets += 1
        job.ticket = self._tickets
        members.add(job)
        self.queued[members] = self.fresh[members] = None

    # -- holding GPUs ---------------------------------------------------------------

    def claim(self, job: JobState, allocation: Allocation) -> None:
        """Promise these GPUs to a pending job.

        Raises:
            PolicyError: one of them is not free.
        """
        self.capacity.take(allocation)
        job.allocation = allocation
        self.withdraw(job)
        job.phase = NOMINATED
        for share in allocation.shares:
            self.by_node[share.node][job.job.id] = job
        self._hold(job)
        self.touch(allocation)

    def unclaim(self, job: JobState, now: int) -> None:
        """Take the promise back: the job waits again, as if nothing had happened."""
        self._unhold(job)
        allocation = self._drop(job)
        self.capacity.give(allocation)
        self.improve(allocation)
        self.enqueue(job, now)

    def ask_start(self, job: JobState, now: int, min_run: int) -> None:
        """The job is asked to start on the GPUs promised to it."""
        assert job.allocation is not None
        job.phase = STARTING
        job.started_at = now
        job.protected_until = now + (min_run if job.job.min_run is None else job.job.min_run)
        job.attempts += 1
        job.version += 1
        self.capacity.begin(job.allocation)

    def run(self, job: JobState, now: int, speed: float, min_run: int) -> None:
        """The job makes progress from now on."""
        job.phase = RUNNING
        job.running_since = now
        job.speed = speed
        min_run = min_run if job.job.min_run is None else job.job.min_run
        job.protected_until = now + min_run
        self.running[job.job.id] = job
        self.rekey(job, now)
        if min_run and self._ordering.preemptive and job.job.request.preemptible:
            self._protect((job.protected_until, job.version, job))

    def _protect(self, entry: tuple[int, int, JobState]) -> None:
        protected = self.protected
        if protected and entry < protected[-1]:
            protected.insert(bisect_left(protected, entry), entry)
        else:
            protected.append(entry)  # as good as always: most jobs are protected for the same time

    def expire(self, now: int) -> None:
        """Jobs whose protection is over may be stopped: their nodes have improved."""
        protected = self.protected
        while protected and protected[0][0] <= now:
            _, version, job = protected.popleft()
            if job.phase is RUNNING and job.version == version:
                assert job.allocation is not None
                self.improve(job.allocation)

    def next_release(self, challenge: int) -> int | None:
        """When the next job with a running key above `challenge` loses its protection, ns."""
        for until, version, job in self.protected:
            if job.phase is RUNNING and job.version == version and job.running_key > challenge:
                return until
        return None

    def rekey(self, job: JobState, now: int) -> None:
        """Work out the running key anew."""
        if not self._ordering.preemptive:
            return
        if self.order is not None:
            self.order.remove(job)
        job.running_key = self._ordering.running_key(job, now)
        if self.order is not None:
            self.order.add(job)
        # Who is protected is no candidate for eviction, whatever its key.
        if job.allocation is not None and job.protected_until <= now:
            self.improve(job.allocation)

    def release(self, job: JobState, now: int) -> None:
        """The job is asked to stop: its GPUs count as free for planning."""
        assert job.allocation is not None
        job.pause(now)
        if job.phase is RUNNING:
            self._leave_running(job)
        job.phase = STOPPING
        self.capacity.give(job.allocation)
        self.capacity.hold(job.allocation)
        self.touch(job.allocation)
        self._unhold(job)

    def unrelease(self, job: JobState, since: int, time_run: int, progress: int) -> None:
        """Undo `release` within the same decision."""
        assert job.allocation is not None
        self.capacity.unhold(job.allocation)
        self.capacity.take_back(job.allocation)
        self.touch(job.allocation)
        job.phase = RUNNING
        job.running_since, job.time_run, job.progress = since, time_run, progress
        self.running[job.job.id] = job
        self._hold(job)
        if self.order is not None:
            self.order.add(job)

    def vacate(self, job: JobState, now: int) -> None:
        """The job holds no GPU any more, whatever it was doing."""
        job.pause(now)
        stopping = job.phase is STOPPING
        nominated = job.phase is NOMINATED
        if job.phase is RUNNING:
            self._leave_running(job)
        if not stopping:
            self._unhold(job)
        allocation = self._drop(job)
        if stopping:
            self.capacity.unhold(allocation)
        else:
            self.capacity.give(allocation)
            self.improve(allocation)
        if not nominated:
            self.capacity.leave(allocation)
            self.vacated = True
        job.version += 1

    def touch(self, allocation: Allocation) -> None:
        """Note that free GPUs, running jobs or their keys changed on these nodes."""
        for share in allocation.shares:
            self.touched.add(share.node)

    def improve(self, allocation: Allocation) -> None:
        """Note that these nodes changed to the good of those who wait."""
        for share in allocation.shares:
            self.touched.add(share.node)
            self.improved.add(share.node)

    def _leave_running(self, job: JobState) -> None:
        del self.running[job.job.id]
        if self.order is not None:
            self.order.remove(job)

    def _hold(self, job: JobState) -> None:
        """The job counts among the holders, its GPUs among its tenant's."""
        tenant = job.job.tenant
        self.holders[job.job.id] = job
        self.allocated[tenant] = self.allocated.get(tenant, 0) + job.gpus
        if self._by_tenant:
            self._account(job).hold(job)

    def _unhold(self, job: JobState) -> None:
        """The job is stopping or gone: neither it nor its GPUs count any more."""
        del self.holders[job.job.id]
        self.allocated[job.job.tenant] -= job.gpus
        if self._by_tenant:
            self._account(job).unhold(job)

    def _account(self, job: JobState) -> Account:
        account = self.accounts.get(job.job.tenant)
        if account is None:
            account = self.accounts[job.job.tenant] = Account()
        return account

    def _drop(self, job: JobState) -> Allocation:
        allocation = job.allocation
        assert allocation is not None
        job.allocation = None
        for share in allocation.shares:
            self.by_node[share.node].pop(job.job.id, None)
        return allocation
