"""Admission: what queues may hold, and from whom they may take it back.

A job counts for its leaf and for every queue above. `Quotas` keeps these sums, the limits
and the shares of one decision; steps of the decision are booked as they are taken.

Two queues compete where their paths part: there, a queue may take GPUs back that a sibling
borrowed, up to what it can *claim*: its guarantee under `reclaim: quota`, its fair share
under `reclaim: fair-share`. The sibling keeps at least what it could claim itself. For that, shares are
those of a cluster in which everybody who wants anything wants everything: a queue that asks
for little today does not make the others' claims larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace

from trainmaster.model.ports import ClusterView, JobView, TenantView
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.policies.parts.shares import FairShares
from trainmaster.policies.parts.victims import may_stop

NO_TENANT = "no tenant"
"""The queue of jobs that name none, where the cluster has no queues of its own."""

Turn = tuple[tuple[bool, int, float, str], ...]
"""Whose turn it is: compared level by level, from the top of the tree."""


class Quotas:
    """The queues of a cluster; without any, every tenant is a queue at the top.

    Call `begin` first in every decision.
    """

    def __init__(self) -> None:
        self.tree: QueueTree | None = None
        self.used: dict[str, int] = {}
        self._tenants: Mapping[str, TenantView] = {}
        self._names: dict[str, str] = {}
        self._shares: FairShares | None = None
        self._claims: FairShares | None = None
        self._capacity = -1

    def begin(self, view: ClusterView) -> None:
        """Take up what queues hold and want now."""
        self._tenants = view.tenants
        tree = self._tree(view)
        capacity = view.cluster.gpus * 1000
        if tree is not self.tree:
            self.tree = tree
            self._shares, self._claims = FairShares(tree, capacity), FairShares(tree, capacity)
        self.used = dict.fromkeys((queue.name for queue in tree.queues), 0)
        for tenant, account in self._tenants.items():
            if account.held and not self.unknown(tenant):
                for queue in self.path(tenant):
                    self.used[queue.name] += account.held

    def _tree(self, view: ClusterView) -> QueueTree:
        if view.cluster.queues is not None:
            return view.cluster.queues
        self._names = {"": NO_TENANT}
        if self.tree is not None and all(self._names.get(name, name) in self.tree for name in self._tenants):
            return self.tree
        weights = {self._names.get(name, name): view.weights.get(name, 1.0) for name in sorted(self._tenants)}
        return QueueTree(tuple(Queue(name, weight=weight) for name, weight in weights.items()))

    def path(self, tenant: str) -> tuple[Queue, ...]:
        """The tenant's queue and those above it."""
        assert self.tree is not None
        return self.tree.path(self._names.get(tenant, tenant))

    # -- limits -----------------------------------------------------------------------------

    def refusal(self, job: JobView) -> str:
        """Why the job may never start; "" = it may."""
        return self._refusal(job.job.tenant, job.gpus)

    def full(self, job: JobView) -> Queue | None:
        """The first queue on the job's path whose limit it would exceed."""
        assert self.tree is not None
        for queue in self.path(job.job.tenant):
            if queue.limit is not None and self.used[queue.name] + job.gpus > queue.limit:
                return queue
        return None

    def unknown(self, tenant: str) -> bool:
        """Whether no job of this tenant may start, since there is no such queue."""
        return bool(self._refusal(tenant))

    def _refusal(self, tenant: str, milli: int = 0) -> str:
        assert self.tree is not None
        return self.tree.refusal(self._names.get(tenant, tenant), milli)

    def excess(self, job: JobView) -> int:
        """Milli-GPUs by which the job would exceed the tightest limit on its path."""
        assert self.tree is not None
        return max(
            (
                self.used[queue.name] + job.gpus - queue.limit
                for queue in self.path(job.job.tenant)
                if queue.limit is not None
            ),
            default=0,
        )

    def book(self, job: JobView, sign: int = 1) -> None:
        """The job was started (stopped, with sign −1) in this decision."""
        assert self.tree is not None
        for queue in self.path(job.job.tenant):
            self.used[queue.name] += sign * job.gpus

    # -- turns ------------------------------------------------------------------------------

    def turn(self, tenant: str) -> Turn:
        """Smaller = sooner: who is below its guarantee, then by priority, then by what it has
        beyond its guarantee for its weight."""
        assert self.tree is not None
        used = self.used
        levels = []
        for queue in reversed(self.path(tenant)):
            beyond = used[queue.name] - queue.guaranteed
            weighed = beyond / queue.weight if queue.weight else float(beyond) * 1e12
            levels.append((beyond >= 0, -queue.priority if beyond >= 0 else 0, weighed, queue.name))
        return tuple(levels)

    # -- reclaiming -------------------------------------------------------------------------

    def claim(self, queue: Queue, fair: bool) -> int:
        """Milli-GPUs that the queue can claim."""
        if not fair:
            return queue.guaranteed
        assert self._claims is not None and self.tree is not None
        accounts = self._accounts()
        for leaf in self.tree.leaves:
            account = accounts.get(leaf.name)
            wants = account is not None and (account.held or account.waiting)
            self._claims.ask(leaf.name, 1 << 60 if wants else 0)
        return self._claims.now[queue.name]

    def borrowed(self, job: JobView, now: int) -> list[JobView]:
        """Jobs that the job's queue may have stopped to get back what is its own, in the order in
        which they would go: each time the last job of the leaf that holds most beyond its claim
        for its weight. Whatever part of them goes, no queue falls below its claim by that."""
        assert self.tree is not None
        mine = self.path(job.job.tenant)[::-1]
        accounts = self._accounts()
        held = dict(self.used)
        stacks: dict[str, list[JobView]] = {}
        heap: list[tuple[float, str]] = []
        rivals: dict[str, tuple[Queue, int, bool]] = {}
        for leaf in self.tree.leaves:
            account = accounts.get(leaf.name)
            rival = self._rival(mine, leaf.name, job.gpus) if account is not None and account.held else None
            if account is None or rival is None:
                continue
            rivals[leaf.name] = rival
            stacks[leaf.name] = weakest_last(
                victim for victim in account.jobs.values() if may_stop(victim, now)
            )
            heap.append((-self._beyond(rival, held), leaf.name))
        heapify(heap)
        found: list[JobView] = []
        while heap:
            before, name = heap[0]
            rival = rivals[name]
            beyond = -self._beyond(rival, held)
            if beyond != before:
                heapreplace(heap, (beyond, name))
                continue
            victim = stacks[name].pop() if stacks[name] else None
            if victim is None or not self._may_lose(rival, held, victim.gpus):
                # A smaller one could still go, but never out of its turn.
                heappop(heap)
                continue
            found.append(victim)
            for queue in self.tree.path(name):
                held[queue.name] -= victim.gpus
        return found

    def _accounts(self) -> dict[str, TenantView]:
        """Tenants by the name of their queue."""
        return {self._names.get(tenant, tenant): account for tenant, account in self._tenants.items()}

    def _rival(self, mine: tuple[Queue, ...], other: str, gpus: int) -> tuple[Queue, int, bool] | None:
        """(the queue in which `other` competes with mine, its claim, whether that is its fair
        share), if mine can claim so many GPUs there."""
        assert self.tree is not None
        for own, queue in zip(mine, self.tree.path(other)[::-1], strict=False):
            if own.name == queue.name:
                continue
            fair = own.reclaim == "fair-share"
            if own.reclaim == "none" or self.used[own.name] + gpus > self.claim(own, fair):
                return None
            return queue, self.claim(queue, fair), fair
        return None

    @staticmethod
    def _beyond(rival: tuple[Queue, int, bool], held: Mapping[str, int]) -> float:
        queue, claim, _ = rival
        return (held[queue.name] - claim) / (queue.weight or 1e-9)

    @staticmethod
    def _may_lose(rival: tuple[Queue, int, bool], held: Mapping[str, int], gpus: int) -> bool:
        """A guarantee is kept even where the last job to go reaches below the rival's: what that
        job held was partly borrowed. Fair shares are left only as far as they stay fair."""
        queue, claim, fair = rival
        left = held[queue.name]
        return left - gpus >= claim if fair else left > claim


def weakest_last(jobs: Iterable[JobView]) -> list[JobView]:
    """Most urgent first, then in order of submission."""
    return sorted(jobs, key=lambda job: (-job.job.priority, job.job.submit, job.job.sequence))
