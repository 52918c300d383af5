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
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from trainmaster.model.ports import ClusterView, JobView, TenantView
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import GPU
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
        self._claims: FairShares | None = None
        self._asked = False

    def begin(self, view: ClusterView) -> None:
        """Take up what queues hold and want now."""
        self._tenants = view.tenants
        self._asked = False
        tree = self._tree(view)
        if tree is not self.tree:
            self.tree = tree
            self._claims = FairShares(tree, view.cluster.gpus * GPU)
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
        if not fair or not queue.weight:
            # Who has no weight uses what is left over, and can claim none of it.
            return queue.guaranteed
        assert self._claims is not None and self.tree is not None
        if not self._asked:
            # Who wants anything, running or waiting, stays the same throughout a decision.
            self._asked = True
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
        if not any(self._can_claim(queue, job.gpus) for queue in self.path(job.job.tenant)):
            return []
        accounts = self._accounts()
        held = dict(self.used)
        stacks: dict[str, list[JobView]] = {}
        rivals: dict[str, Rival] = {}
        for leaf in self.tree.leaves:
            account = accounts.get(leaf.name)
            rival = self._rival(job, leaf.name) if account is not None and account.held else None
            if account is not None and rival is not None:
                rivals[leaf.name] = rival
                jobs = account.jobs.values()
                stacks[leaf.name] = weakest_last(victim for victim in jobs if may_stop(victim, now))
        heap = [(-rival.beyond(held), name) for name, rival in rivals.items()]
        heapify(heap)
        found: list[JobView] = []
        while heap:
            before, name = heap[0]
            current = -rivals[name].beyond(held)
            if current != before:
                heapreplace(heap, (current, name))
            elif not stacks[name] or not rivals[name].may_lose(held, stacks[name][-1].gpus):
                # A smaller one could still go, but never out of its turn.
                heappop(heap)
            else:
                victim = stacks[name].pop()
                found.append(victim)
                for queue in self.path(victim.job.tenant):
                    held[queue.name] -= victim.gpus
        return found

    def may_reclaim(self, job: JobView, other: JobView) -> bool:
        """Whether `job` could have `other` stopped as a borrower, if that were running and the
        rest of its own queue had ended."""
        rival = self._rival(job, other.job.tenant, alone=True)
        if rival is None or not other.job.request.preemptible:
            return False
        held = {rival.queue.name: self.used[rival.queue.name] + other.gpus}
        return rival.may_lose(held, other.gpus if rival.fair else 0)

    def _accounts(self) -> dict[str, TenantView]:
        """Tenants by the name of their queue."""
        return {self._names.get(tenant, tenant): account for tenant, account in self._tenants.items()}

    def _can_claim(self, queue: Queue, gpus: int, used: int | None = None) -> bool:
        """Whether the queue can claim so many GPUs more than it uses."""
        if queue.reclaim == "none":
            return False
        used = self.used[queue.name] if used is None else used
        return used + gpus <= self.claim(queue, queue.reclaim == "fair-share")

    def _rival(self, job: JobView, other: str, *, alone: bool = False) -> Rival | None:
        """The queue in which `other` competes with the job's own, if that can claim so many GPUs
        there (`alone`: as if it held none yet)."""
        for own, queue in zip(self.path(job.job.tenant)[::-1], self.path(other)[::-1], strict=False):
            if own.name == queue.name:
                continue
            if not self._can_claim(own, job.gpus, 0 if alone else None):
                return None
            fair = own.reclaim == "fair-share"
            return Rival(queue, self.claim(queue, fair), fair)
        return None


@dataclass(frozen=True, slots=True)
class Rival:
    """A queue that may hold GPUs which another can claim.

    Args:
        queue: who.
        claim: milli-GPUs that it can claim itself.
        fair: whether that is its fair share, not its guarantee.
    """

    queue: Queue
    claim: int
    fair: bool

    def beyond(self, held: Mapping[str, int]) -> float:
        """What it holds beyond its claim, for its weight."""
        return (held[self.queue.name] - self.claim) / (self.queue.weight or 1e-9)

    def may_lose(self, held: Mapping[str, int], gpus: int) -> bool:
        """A guarantee is kept even where the last job to go reaches below the rival's: what that
        job held was partly borrowed. Fair shares are left only as far as they stay fair."""
        left = held[self.queue.name]
        return left - gpus >= self.claim if self.fair else left > self.claim


def weakest_last(jobs: Iterable[JobView]) -> list[JobView]:
    """Most urgent first, then in order of submission."""
    return sorted(jobs, key=lambda job: (-job.job.priority, job.job.submit, job.job.sequence))
