"""Walks through the queue that make running jobs give way.

`GreedyWalk` serves a pool: all jobs, running or not, in order; each takes what fits, and
who runs and isn't chosen stops. `Evict` serves nodes: a job that finds no room takes the
place of the fewest, weakest jobs on the node (or nodes) that need the least; victims
that turn out superfluous are given back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush

from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView, ClusterView, JobView, Ordering, PendingClass, Phase
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.parts.placement import Placement
from trainmaster.policies.parts.queue import Heads, Merged


class GreedyWalk:
    """The exact greedy walk of a pool."""

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        now = view.now
        if not ordering.stable:
            ordering.refresh(view)
        waiting = Merged(view, ordering)
        if waiting.key is None:
            return
        running = self._running(view, ordering)
        budget = view.capacity.free_milli + sum(
            job.job.request.gpus for _, job in running if _may_stop(job, now)
        )
        starts: list[JobView] = []
        stops: list[JobView] = []

        def take_waiting(before: int | None) -> None:
            nonlocal budget
            while waiting.key is not None and (before is None or waiting.key < before):
                job = waiting.job
                if job.job.request.gpus <= budget:
                    budget -= job.job.request.gpus
                    starts.append(job)
                    waiting.advance()
                else:
                    waiting.drop()

        for key, job in running:
            if waiting.key is not None and waiting.key < key:
                take_waiting(key)
            if not _may_stop(job, now):
                continue
            if job.job.request.gpus <= budget:
                budget -= job.job.request.gpus
            else:
                stops.append(job)
        take_waiting(None)
        for job in stops:
            view.preempt(job)
        for job in starts:
            allocation = placement.find(view.capacity, job.job.request)
            assert allocation is not None
            view.start(job, allocation)
        self._wake(view)

    @staticmethod
    def _running(view: ClusterView, ordering: Ordering) -> Sequence[tuple[int, JobView]]:
        """Running jobs, who gives way last first."""
        if ordering.stable:
            return view.running_order
        return sorted((ordering.running_key(job, view.now), job) for job in view.running)

    @staticmethod
    def _wake(view: ClusterView) -> None:
        ends = [job.protected_until for job in view.holders if job.protected_until > view.now]
        if ends and any(True for _ in view.pending_classes):
            view.wake(min(ends))


def _may_stop(job: JobView, now: int) -> bool:
    return job.phase is Phase.RUNNING and job.protected_until <= now and job.job.request.preemptible


class Evict:
    """Fewest, weakest victims, by node.

    For each node the jobs that may be stopped are kept in order of running key, with the
    *threshold* for each number of GPUs: the key of the strongest job that must go to free
    them, weakest first. The node with the weakest threshold is taken from one heap per
    number of GPUs; both are refreshed lazily, for nodes that were touched.

    A class that found no room is not tried again before its first job changes or a node that
    improved could help it: with time alone, waiting jobs never gain on running ones.
    """

    def __init__(self) -> None:
        self._victims: dict[int, Victims] = {}
        self._heaps: dict[int, list[tuple[int, int, int]]] = {}
        self._stale: dict[int, set[int]] = {}
        self._versions: dict[int, int] = {}
        self._protected: dict[JobView, int] = {}
        self._blocked: dict[PendingClass, JobView] = {}
        self._next_wake: int | None = None
        self._parts: dict[PendingClass, tuple[int, ...]] = {}
        self._largest = self._full_size = 0

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        self._expire(view)
        self._refresh(view, ordering, everything=not ordering.stable)
        improved = view.improved()
        if not improved and self._nothing_new(view, ordering):
            return
        heads = Heads(view, ordering, self._still_blocked(view, ordering, placement, improved))
        while (job := heads.first()) is not None:
            members = heads.members
            room = placement.find(view.capacity, members.request, relaxed=members.relaxed)
            allocation, surplus = room, False
            if room is None:
                allocation, surplus = self._displace(view, ordering, placement, job, members)
            if allocation is None:
                heads.drop()
                continue
            view.start(job, allocation)
            self._refresh(view, ordering, everything=not ordering.stable)
            heads.advance()
            if room is None and not ordering.stable:
                heads.rank()
            if surplus:
                heads.restore()
        self._blocked = heads.dropped
        self._wake(view, ordering)

    # -- what need not be tried -------------------------------------------------------------

    def _nothing_new(self, view: ClusterView, ordering: Ordering) -> bool:
        """Whether the queue is as the last decision left it, and no wake-up is due."""
        if not ordering.stable or (self._next_wake is not None and self._next_wake <= view.now):
            return False
        blocked = self._blocked
        return all(blocked.get(members) is members.head() for members in view.fresh)

    def _still_blocked(
        self, view: ClusterView, ordering: Ordering, placement: Placement, improved: set[int]
    ) -> dict[PendingClass, JobView]:
        """Classes that found no room last time and find none now."""
        # Under spread a gang takes its GPUs from any nodes, one here and one there.
        if not ordering.stable or placement.name != "pack":
            return {}
        nodes = [self._on(view, ordering, node) for node in improved]
        now = view.now
        blocked = {}
        for members, head in self._blocked.items():
            if members.head() is not head:
                continue
            if not nodes or not self._helps(members, ordering.challenge(head, now), view, nodes):
                blocked[members] = head
        return blocked

    def _helps(self, members: PendingClass, challenge: int, view: ClusterView, nodes: list[Victims]) -> bool:
        """Whether one of the nodes could take the class's first job, or a part of it."""
        if members.relaxed:
            return True
        for part in self._parts_of(members, view):
            for victims in nodes:
                index = part - victims.free - 1
                if index < 0 or (index < len(victims.thresholds) and victims.thresholds[index] > challenge):
                    return True
        return False

    def _parts_of(self, members: PendingClass, view: ClusterView) -> tuple[int, ...]:
        """Whole GPUs that the class needs on a node: its size, or whole nodes and a remainder."""
        largest = view.capacity.largest_node
        if largest != self._largest:
            self._largest = largest
            self._full_size = _mask([node for node, size in enumerate(view.capacity.size) if size == largest])
            self._parts.clear()
        parts = self._parts.get(members)
        if parts is None:
            gpus, fraction = divmod(members.request.gpus, GPU)
            rest = gpus % largest if largest else 0
            uneven = gpus > largest and len(set(view.capacity.size)) > 1
            parts = (0,) if fraction or uneven else (gpus,) if gpus <= largest else (largest, rest or largest)
            self._parts[members] = parts
        return parts

    # -- choosing victims ---------------------------------------------------------------------

    def _displace(
        self, view: ClusterView, ordering: Ordering, placement: Placement, job: JobView, members: PendingClass
    ) -> tuple[Allocation | None, bool]:
        """Stop the victims that make room for `job`, if there are any such.

        Returns the allocation, and whether GPUs became free that it doesn't take.
        """
        request = members.request
        challenge = ordering.challenge(job, view.now)
        eligible = view.capacity.eligible(request)
        if not eligible:
            return None, False
        need, fraction = divmod(request.gpus, GPU)
        shared = view.capacity.shared_device(fraction, eligible) if fraction and need else None
        if fraction and shared is None:
            need += 1
        self._parts_of(members, view)
        if need <= view.capacity.largest_node:
            needs = dict.fromkeys(self._weakest(view, ordering, need, challenge, eligible, 1), need)
        else:
            needs = self._several(view, ordering, need, challenge, eligible)
        if not needs:
            return None, False
        victims = _needed(view.capacity, placement, request, self._enough(view, ordering, needs, challenge))
        left: dict[int, int] = {}
        for victim in victims:
            view.preempt(victim)
            for node, _, milli in _allocation(victim).shares:
                left[node] = left.get(node, 0) + milli
        allocation = placement.find(view.capacity, request)
        assert allocation is not None, "the victims don't make room"
        for node, _, milli in allocation.shares:
            left[node] = left.get(node, 0) - milli
        return allocation, any(milli > 0 for milli in left.values())

    def _several(
        self, view: ClusterView, ordering: Ordering, need: int, challenge: int, eligible: int
    ) -> dict[int, int]:
        """Whole nodes and a remainder: GPUs needed by node, or nothing."""
        capacity = view.capacity
        largest = capacity.largest_node
        full_size = self._full_size & eligible
        count, rest = divmod(need, largest)
        chosen = bits(capacity.whole & full_size)[:count]
        if len(chosen) < count:
            others = full_size & ~_mask(chosen)
            chosen += self._weakest(view, ordering, largest, challenge, others, count - len(chosen))
        if len(chosen) < count:
            return {}
        needs = dict.fromkeys(chosen, largest)
        if rest:
            others = eligible & ~_mask(chosen)
            room = (
                node for free in range(rest, largest + 1) for node in bits(capacity.with_free[free] & others)
            )
            node = next(room, None)
            last = [node] if node is not None else self._weakest(view, ordering, rest, challenge, others, 1)
            if not last:
                return {}
            needs[last[0]] = rest
        return needs

    def _weakest(
        self, view: ClusterView, ordering: Ordering, gpus: int, challenge: int, eligible: int, count: int
    ) -> list[int]:
        """Up to `count` nodes where freeing `gpus` costs the weakest jobs, all of them
        weaker than `challenge`."""
        heap = self._heap(view, ordering, gpus)
        found: list[int] = []
        kept: list[tuple[int, int, int]] = []
        while heap and len(found) < count and -heap[0][0] > challenge:
            entry = heappop(heap)
            _, node, version = entry
            if version != self._versions[node]:
                continue
            kept.append(entry)
            if eligible >> node & 1:
                found.append(node)
        for entry in kept:
            heappush(heap, entry)
        return found

    def _enough(
        self, view: ClusterView, ordering: Ordering, needs: dict[int, int], challenge: int
    ) -> list[JobView]:
        """Victims that free `needs`, weakest first."""
        free = {node: view.capacity.free_on(node) for node in needs}
        chosen: dict[JobView, int] = {}
        for node, need in needs.items():
            for key, job, _ in self._on(view, ordering, node).jobs:
                if free[node] >= need or key <= challenge:
                    break
                if job not in chosen:
                    chosen[job] = key
                    for where, gain in _gains(job, free):
                        free[where] += gain
        return sorted(chosen, key=chosen.__getitem__, reverse=True)

    # -- the index ------------------------------------------------------------------------------

    def _refresh(self, view: ClusterView, ordering: Ordering, *, everything: bool) -> None:
        """Forget what is known of the nodes that were touched, or of all."""
        touched = view.touched()
        if everything:
            ordering.refresh(view)
            touched = set(range(len(view.cluster.nodes)))
        if touched:
            self._forget(touched)

    def _forget(self, nodes: set[int]) -> None:
        versions = self._versions
        for node in nodes:
            self._victims.pop(node, None)
            versions[node] = versions.get(node, 0) + 1
        for stale in self._stale.values():
            stale |= nodes

    def _heap(self, view: ClusterView, ordering: Ordering, gpus: int) -> list[tuple[int, int, int]]:
        nodes = len(view.cluster.nodes)
        heap = self._heaps.setdefault(gpus, [])
        stale = self._stale.setdefault(gpus, set(range(nodes)))
        if not stale:
            return heap
        if len(heap) > 8 * nodes + 64:
            heap.clear()
            stale.update(range(nodes))
        for node in stale:
            victims = self._on(view, ordering, node)
            index = gpus - victims.free - 1
            if 0 <= index < len(victims.thresholds):
                heappush(heap, (-victims.thresholds[index], node, self._versions.setdefault(node, 0)))
        stale.clear()
        return heap

    def _on(self, view: ClusterView, ordering: Ordering, node: int) -> Victims:
        known = self._victims.get(node)
        if known is None:
            known = self._victims[node] = Victims(view, ordering, node, self._protected)
        return known

    # -- protection -----------------------------------------------------------------------------

    def _expire(self, view: ClusterView) -> None:
        """Look again at the nodes of jobs whose protection is over."""
        now = view.now
        expired = [job for job, until in self._protected.items() if until <= now]
        for job in expired:
            if job.phase is STARTING or job.protected_until > now:
                self._protected[job] = _protected_until(job, now)
            else:
                del self._protected[job]
                if job.allocation is not None:
                    view.improve(job.allocation)

    def _wake(self, view: ClusterView, ordering: Ordering) -> None:
        """Ask again when a weaker job than a blocked one loses its protection."""
        self._next_wake = None
        if not self._blocked or not self._protected:
            return
        now = view.now
        strongest = min(ordering.challenge(job, now) for job in self._blocked.values())
        ends = [
            until
            for job, until in self._protected.items()
            if until > now
            and (job.phase is STARTING or (job.phase is RUNNING and job.running_key > strongest))
        ]
        if ends:
            self._next_wake = min(ends)
            view.wake(self._next_wake)


class Victims:
    """What could be stopped on one node.

    Args:
        view, ordering: of this decision.
        node: its index.
        protected: jobs that may not be stopped yet are added here, with the end of that.

    Attributes:
        jobs: (running key, job, whole GPUs it frees here), weakest first.
        free: wholly free GPUs.
        thresholds: entry i is the key of the strongest job that must go, weakest first, to
            have free + i + 1 GPUs.
    """

    __slots__ = ("free", "jobs", "thresholds")

    def __init__(
        self, view: ClusterView, ordering: Ordering, node: int, protected: dict[JobView, int]
    ) -> None:
        now = view.now
        stable = ordering.stable
        jobs: list[tuple[int, JobView, int]] = []
        for job in view.on_node(node):
            phase = job.phase
            if phase is not RUNNING and phase is not STARTING:
                continue
            if phase is STARTING or job.protected_until > now:
                protected[job] = _protected_until(job, now)
            elif job.job.request.preemptible:
                milli, shares = job.gpus, _allocation(job).shares
                if len(shares) > 1:
                    milli = sum(share.milli for share in shares if share.node == node)
                # Fractions are not stopped for others: freeing one may free no device.
                if milli >= GPU:
                    key = job.running_key if stable else ordering.running_key(job, now)
                    jobs.append((key, job, milli // GPU))
        if len(jobs) > 1:
            jobs.sort(key=_key, reverse=True)
        self.jobs = jobs
        self.free = view.capacity.free_on(node)
        self.thresholds: list[int] = []
        for key, _, gain in jobs:
            self.thresholds += (key,) * gain


RUNNING, STARTING = Phase.RUNNING, Phase.STARTING


def _protected_until(job: JobView, now: int) -> int:
    """Until when the job may not be stopped, at least; one that is still starting later than
    it was asked to will be protected from its start on."""
    if job.protected_until > now:
        return job.protected_until
    return now + max(job.protected_until - job.started_at, SECOND)


def _key(victim: tuple[int, JobView, int]) -> int:
    return victim[0]


def _mask(nodes: list[int]) -> int:
    return sum(1 << node for node in nodes)


def _gains(job: JobView, nodes: Collection[int]) -> list[tuple[int, int]]:
    """(node, whole GPUs that the job holds there), for those of the given nodes."""
    return [(share.node, share.milli // GPU) for share in _allocation(job).shares if share.node in nodes]


def _needed(
    capacity: CapacityView, placement: Placement, request: Request, victims: list[JobView]
) -> list[JobView]:
    """Those of the victims, weakest first, without whom there is no room. Whoever is
    stronger is spared first; one victim alone is needed, or there was room before."""
    if len(victims) == 1:
        return victims
    trial = capacity.copy()
    for victim in victims:
        trial.give(_allocation(victim))
    needed = []
    for victim in reversed(victims):
        allocation = _allocation(victim)
        # On a node that is down nothing can be taken back.
        if trial.fits(allocation):
            trial.take(allocation)
            if placement.find(trial, request) is not None:
                continue
            trial.give(allocation)
        needed.append(victim)
    return needed[::-1]


def _allocation(job: JobView) -> Allocation:
    assert job.allocation is not None
    return job.allocation
