"""A walk for queues that share a cluster: whose turn it is, who gives way, what is promised.

Queues take turns: whoever is furthest below its guarantee, then its share, starts its first
job. A job that finds no room may stop jobs of its own queue of lower priority, and jobs that
other queues run on GPUs which are its own queue's (see `admission`). If that doesn't help it
waits, and smaller jobs pass it, but for one job of each kind of GPU: the one that has waited
longest is promised the nodes that are expected to get free first, and nobody is started there
who would still be running by then.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import Any

from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.ports import ANYBODY, ClusterView, JobView, Ordering, PendingClass, Phase
from trainmaster.model.reason import Reason
from trainmaster.model.units import SECOND
from trainmaster.policies.parts.admission import Quotas, Turn, weakest_last
from trainmaster.policies.parts.backfill import reservation
from trainmaster.policies.parts.giving_way import by_turn
from trainmaster.policies.parts.placement import EVERYWHERE, Placement
from trainmaster.policies.parts.queue import Heads
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.room import make_room
from trainmaster.policies.parts.victims import may_stop

ANEW_AFTER = 60 * SECOND
"""A promise that wasn't kept in time is made anew at most so often: jobs that outlive their estimates
are expected to end at once, again and again."""


@dataclass(frozen=True, slots=True)
class Promise:
    """GPUs kept for a waiting job.

    Args:
        job: who waits.
        at: when they are expected to be free, ns.
        nodes: mask of their nodes.
        made: when it was made, ns.
    """

    job: JobView
    at: int
    nodes: int
    made: int


class Turns:
    """Queues take turns.

    Args:
        promise_after: ns of waiting after which a job can be promised GPUs; None = never.
        preempt: whether jobs may be stopped for others.
    """

    def __init__(self, promise_after: int | None = 0, *, preempt: bool = True) -> None:
        self.quotas = Quotas()
        self.promises: dict[tuple[str, ...], Promise] = {}
        self._promise_after = promise_after
        self._preempt = preempt
        self._heads: dict[str, Heads] = {}

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        for members in view.fresh():
            heads = self._heads.get(members.tenant)
            if heads is None:
                heads = self._heads[members.tenant] = Heads(view, ordering)
            heads.add(members)
        if not self._heads:
            return
        self.quotas.begin(view)
        turns = self._turns()
        if not turns:
            view.wake_on_release(None)
            return
        self._promise(view, placement)
        waiting = self._take(view, placement, turns)
        self._keep(view, placement)
        view.wake_on_release(ANYBODY if waiting and self._preempt else None)

    def memory(self) -> dict[str, Any]:
        """The promises: when they are due and where was settled when they were made."""
        promises = [
            [list(kind), promise.job.job.id, promise.at, bits(promise.nodes), promise.made]
            for kind, promise in self.promises.items()
            if promise.job.phase is Phase.PENDING
        ]
        return {"promises": promises} if promises else {}

    def recall(self, memory: Mapping[str, Any], view: ClusterView, jobs: Mapping[str, JobView]) -> None:
        """Keep these promises."""
        for kind, name, at, nodes, made in memory.get("promises", ()):
            self.promises[tuple(kind)] = Promise(jobs[name], at, sum(1 << node for node in nodes), made)

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`."""
        twin = copy.copy(self)
        twin.quotas = inquiry.quotas
        nodes = twin._open_nodes(job, inquiry.view.now)
        kept = [(promise.job, promise.at, promise.nodes) for promise in self.promises.values()]
        return by_turn(inquiry, job, kept, nodes, preempt=self._preempt)

    def _turns(self) -> list[tuple[Turn, str]]:
        turns = []
        for tenant, heads in self._heads.items():
            for members in tuple(heads.dropped):
                heads.restore(members)
            if heads.first() is not None and not self.quotas.unknown(tenant):
                turns.append((self.quotas.turn(tenant), tenant))
        heapify(turns)
        return turns

    def _take(self, view: ClusterView, placement: Placement, turns: list[tuple[Turn, str]]) -> bool:
        """Let the queues start what they can; returns whether somebody is left waiting."""
        waiting = False
        while turns:
            turn, tenant = turns[0]
            heads = self._heads[tenant]
            job = heads.first()
            if job is None:
                heappop(turns)
                continue
            current = self.quotas.turn(tenant)
            if current != turn:
                heapreplace(turns, (current, tenant))
                continue
            if self._start(view, placement, job, heads.members):
                heads.advance()
                continue
            waiting = True
            if self.quotas.full(job) is not None and not self.quotas.refusal(job):
                # Its queue is full: what comes behind would only make it wait longer.
                heappop(turns)
            else:
                heads.drop()
        return waiting

    def _start(self, view: ClusterView, placement: Placement, job: JobView, members: PendingClass) -> bool:
        """Start the job, with or without stopping others."""
        if self.quotas.refusal(job):
            return False
        nodes = self._open_nodes(job, view.now)
        if self.quotas.full(job) is None:
            allocation = placement.find(view.capacity, members.request, relaxed=members.relaxed, nodes=nodes)
            if allocation is not None:
                self._book(view, job, allocation)
                return True
        return self._preempt and self._displace(view, placement, job, members, nodes)

    def _book(self, view: ClusterView, job: JobView, allocation: Allocation) -> None:
        view.start(job, allocation)
        self.quotas.book(job)

    # -- who gives way ----------------------------------------------------------------------

    def _displace(
        self, view: ClusterView, placement: Placement, job: JobView, members: PendingClass, nodes: int
    ) -> bool:
        """Stop the jobs that must go for this one, if that makes room for it."""
        excess = max(0, self.quotas.excess(job))
        candidates = self._weaker(view, job)
        if not excess:
            candidates += self.quotas.borrowed(job, view.now)
        if not candidates or view.capacity.free_milli + sum(victim.gpus for victim in candidates) < job.gpus:
            return False
        victims = make_room(
            view.capacity, placement, members.request, candidates, at_least=excess, nodes=nodes
        )
        if victims is None:
            return False
        for victim in victims:
            view.preempt(victim)
            self.quotas.book(victim, -1)
        allocation = placement.find(view.capacity, members.request, nodes=nodes)
        assert allocation is not None, "the victims don't make room"
        self._book(view, job, allocation)
        return True

    @staticmethod
    def _weaker(view: ClusterView, job: JobView) -> list[JobView]:
        """Jobs of the same queue with a lower priority that may be stopped, the weakest first."""
        account = view.tenants[job.job.tenant]
        priority = job.job.priority
        if not any(other < priority for other in account.held_at):
            return []
        jobs = account.jobs.values()
        return weakest_last(
            other for other in jobs if other.job.priority < priority and may_stop(other, view.now)
        )[::-1]

    # -- promises ---------------------------------------------------------------------------

    def _open_nodes(self, job: JobView, now: int) -> int:
        """Nodes that are not promised to somebody whom this job would delay."""
        nodes = EVERYWHERE
        promised = any(promise.job is job for promise in self.promises.values())
        for promise in self.promises.values():
            other = promise.job
            if other is job or other.phase is not Phase.PENDING or (promised and _age(job) < _age(other)):
                continue
            if job.expected_end(now) > promise.at and not self._free_of(job, other):
                nodes &= ~promise.nodes
        return nodes

    def _free_of(self, job: JobView, other: JobView) -> bool:
        """Whether what is promised to `other` doesn't bind `job`: of one queue, who stands before
        it or can be stopped for it; of two, if either could have the other stopped."""
        if job.job.tenant == other.job.tenant:
            weaker = job.job.priority < other.job.priority and job.job.request.preemptible
            return job.pending_key <= other.pending_key or (self._preempt and weaker)
        quotas = self.quotas
        return self._preempt and (quotas.may_reclaim(job, other) or quotas.may_reclaim(other, job))

    def _promise(self, view: ClusterView, placement: Placement) -> None:
        """Keep promises that still stand, make those that are due."""
        now = view.now
        for kind, promise in tuple(self.promises.items()):
            if promise.job.phase is not Phase.PENDING:
                del self.promises[kind]
            elif promise.at <= now and now - promise.made >= ANEW_AFTER:
                self._make(view, placement, kind, promise.job)
        if self._promise_after is None:
            return
        oldest: dict[tuple[str, ...], JobView] = {}
        for heads in self._heads.values():
            job = heads.first()
            if job is None or now - job.pending_since < self._promise_after:
                continue
            kind = job.job.request.gpu_types
            if kind in self.promises or (kind in oldest and _age(oldest[kind]) <= _age(job)):
                continue
            if self._only_room_is_missing(view, placement, job):
                oldest[kind] = job
        for kind, job in oldest.items():
            self._make(view, placement, kind, job)

    def _keep(self, view: ClusterView, placement: Placement) -> None:
        """Start promised jobs that find room, the oldest first: they can stand in their queue behind
        one that another promise holds back."""
        promised = [promise.job for promise in self.promises.values() if promise.job.phase is Phase.PENDING]
        for job in sorted(promised, key=_age):
            if self.quotas.refusal(job) or self.quotas.full(job) is not None:
                continue
            nodes = self._open_nodes(job, view.now)
            allocation = placement.find(view.capacity, job.job.request, nodes=nodes)
            if allocation is not None:
                self._book(view, job, allocation)

    def _only_room_is_missing(self, view: ClusterView, placement: Placement, job: JobView) -> bool:
        if self.quotas.refusal(job) or self.quotas.full(job) is not None:
            return False
        return placement.find(view.capacity, job.job.request) is None

    def _make(self, view: ClusterView, placement: Placement, kind: tuple[str, ...], job: JobView) -> None:
        at, allocation, _ = reservation(view, job, False, placement)
        nodes = 0 if allocation is None else sum(1 << node for node in set(allocation.nodes))
        self.promises[kind] = Promise(job, at, nodes, view.now)


def _age(job: JobView) -> tuple[int, int]:
    return job.job.submit, job.job.sequence
