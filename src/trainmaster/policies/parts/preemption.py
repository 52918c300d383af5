"""Walks through the queue that make running jobs give way.

`GreedyWalk` serves a pool: all jobs, running or not, in order; each takes what fits, and
who runs and isn't chosen stops. `Evict` serves nodes: a job that finds no room takes the
place of the fewest, weakest jobs on the node (or nodes) that need the least; victims
that turn out superfluous are given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.ports import ClusterView, JobView, Ordering, PendingClass, Phase
from trainmaster.model.units import GPU
from trainmaster.policies.parts.placement import Placement
from trainmaster.policies.parts.queue import Heads, Merged


class GreedyWalk:
    """The exact greedy walk of a pool."""

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        now = view.now
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
        ordering.refresh(view)
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
    """

    def __init__(self) -> None:
        self._nodes: dict[int, _Victims] = {}
        self._heaps: dict[int, list[tuple[int, int, int]]] = {}
        self._stale: dict[int, set[int]] = {}
        self._versions: dict[int, int] = {}
        self._protected: list[tuple[int, int, JobView]] = []

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        self._forget_expired(view)
        if not ordering.stable:
            ordering.refresh(view)
        heads = Heads(view, ordering)
        while (job := heads.first()) is not None:
            members = heads.members
            allocation = placement.find(view.capacity, members.request, relaxed=members.relaxed)
            surplus = False
            if allocation is None:
                allocation, surplus = self._displace(view, ordering, placement, job, members)
            if allocation is None:
                heads.drop()
                continue
            view.start(job, allocation)
            if not ordering.stable:
                ordering.refresh(view)
            heads.advance()
            if surplus:
                heads.restore()
        self._wake(view, ordering, heads.blocked)

    # -- choosing victims ---------------------------------------------------------------

    def _displace(
        self, view: ClusterView, ordering: Ordering, placement: Placement, job: JobView, members: PendingClass
    ) -> tuple[Allocation | None, bool]:
        """Stop the victims that make room for `job`, if there are any such.

        Returns the allocation, and whether more was freed than it takes.
        """
        request = members.request
        challenge = ordering.challenge(job, view.now)
        need = -(-request.gpus // GPU)
        eligible = view.capacity.eligible(request)
        self._refresh(view, ordering)
        if need <= view.capacity.largest_node:
            chosen = self._weakest(view, ordering, need, challenge, eligible, 1)
            needs = dict.fromkeys(chosen, need) if len(chosen) == 1 else {}
        else:
            needs = self._several(view, ordering, need, challenge, eligible)
        if not needs:
            return None, False
        victims = self._minimal(view, ordering, needs, challenge)
        shares = [share for victim in victims for share in _allocation(victim).shares]
        for victim in victims:
            view.preempt(victim)
        nodes = sum(1 << node for node in needs)
        allocation = placement.find(view.capacity, request, nodes=nodes)
        assert allocation is not None, "the victims don't make room"
        freed = sum(share.milli for share in shares)
        return allocation, freed > request.gpus or any(share.node not in needs for share in shares)

    def _several(
        self, view: ClusterView, ordering: Ordering, need: int, challenge: int, eligible: int
    ) -> dict[int, int]:
        """Whole nodes and a remainder: GPUs needed by node, or nothing."""
        capacity = view.capacity
        largest = capacity.largest_node
        full_size = sum(1 << node for node, size in enumerate(capacity.size) if size == largest) & eligible
        count, rest = divmod(need, largest)
        chosen = bits(capacity.whole & full_size)[:count]
        if len(chosen) < count:
            without = full_size & ~sum(1 << node for node in chosen)
            chosen += self._weakest(view, ordering, largest, challenge, without, count - len(chosen))
        if len(chosen) < count:
            return {}
        needs = dict.fromkeys(chosen, largest)
        if rest:
            others = eligible & ~sum(1 << node for node in chosen)
            room = [
                node for free in range(rest, largest + 1) for node in bits(capacity.with_free[free] & others)
            ]
            chosen = room[:1] or self._weakest(view, ordering, rest, challenge, others, 1)
            if not chosen:
                return {}
            needs[chosen[0]] = rest
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

    def _minimal(
        self, view: ClusterView, ordering: Ordering, needs: dict[int, int], challenge: int
    ) -> list[JobView]:
        """Victims that free `needs`, weakest first; none of them superfluous."""
        free = {node: view.capacity.free_on(node) for node in needs}
        chosen: dict[str, tuple[int, JobView]] = {}
        for node, need in needs.items():
            for key, job, gain in self._victims(view, ordering, node).jobs:
                if free[node] >= need:
                    break
                if key <= challenge or job.job.id in chosen:
                    continue
                chosen[job.job.id] = (key, job)
                for share in _allocation(job).shares:
                    if share.node in free:
                        free[share.node] += gain if share.node == node else share.milli // GPU
        for _, job in sorted(chosen.values(), key=lambda victim: victim[0]):
            gains = {s.node: s.milli // GPU for s in _allocation(job).shares if s.node in free}
            if all(free[node] - gain >= needs[node] for node, gain in gains.items()):
                del chosen[job.job.id]
                for node, gain in gains.items():
                    free[node] -= gain
        return [job for _, job in sorted(chosen.values(), key=lambda victim: -victim[0])]

    # -- the index ------------------------------------------------------------------------

    def _refresh(self, view: ClusterView, ordering: Ordering) -> None:
        """Forget what is known of the nodes that were touched."""
        touched = view.touched()
        if not ordering.stable:
            touched = set(range(len(view.cluster.nodes)))
        for node in touched:
            self._nodes.pop(node, None)
            self._versions[node] = self._versions.get(node, 0) + 1
        for stale in self._stale.values():
            stale |= touched

    def _heap(self, view: ClusterView, ordering: Ordering, gpus: int) -> list[tuple[int, int, int]]:
        heap = self._heaps.get(gpus)
        if heap is None:
            heap = self._heaps[gpus] = []
            self._stale[gpus] = set(range(len(view.cluster.nodes)))
        if len(heap) > 8 * len(view.cluster.nodes) + 64:
            heap.clear()
            self._stale[gpus] = set(range(len(view.cluster.nodes)))
        for node in self._stale[gpus]:
            thresholds = self._victims(view, ordering, node).thresholds
            threshold = thresholds[gpus] if gpus < len(thresholds) else None
            if threshold is not None:
                heappush(heap, (-threshold, node, self._versions.setdefault(node, 0)))
        self._stale[gpus].clear()
        return heap

    def _victims(self, view: ClusterView, ordering: Ordering, node: int) -> _Victims:
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = _Victims(view, ordering, node)
            for until, job in known.protected:
                heappush(self._protected, (until, job.job.sequence, job))
        return known

    # -- protection -----------------------------------------------------------------------

    def _forget_expired(self, view: ClusterView) -> None:
        """Look again at the nodes of jobs whose protection is over."""
        expired: set[int] = set()
        while self._protected and self._protected[0][0] <= view.now:
            job = heappop(self._protected)[2]
            if job.allocation is not None:
                expired.update(job.allocation.nodes)
        for node in expired:
            self._nodes.pop(node, None)
            self._versions[node] = self._versions.get(node, 0) + 1
        for stale in self._stale.values():
            stale |= expired

    def _wake(self, view: ClusterView, ordering: Ordering, blocked: list[JobView]) -> None:
        """Ask again when a weaker job than a blocked one loses its protection."""
        if not blocked or not self._protected:
            return
        now = view.now
        strongest = min(ordering.challenge(job, now) for job in blocked)
        ends = [
            until
            for until, _, job in self._protected
            if until > now
            and job.protected_until == until
            and (job.phase is Phase.STARTING or (job.phase is Phase.RUNNING and job.running_key > strongest))
        ]
        if ends:
            view.wake(min(ends))


class _Victims:
    """What could be stopped on one node.

    Attributes:
        jobs: (running key, job, whole GPUs it frees here), weakest first.
        thresholds: for each number of GPUs, the key of the strongest job that must go to
            have that many free; None where that can't be had or costs nothing.
        protected: (until, job) of jobs that may not be stopped yet.
    """

    __slots__ = ("jobs", "protected", "thresholds")

    def __init__(self, view: ClusterView, ordering: Ordering, node: int) -> None:
        now = view.now
        self.jobs: list[tuple[int, JobView, int]] = []
        self.protected: list[tuple[int, JobView]] = []
        for job in view.on_node(node):
            if job.phase is Phase.RUNNING or job.phase is Phase.STARTING:
                if job.protected_until > now:
                    self.protected.append((job.protected_until, job))
                elif job.phase is Phase.RUNNING and job.job.request.preemptible:
                    key = job.running_key if ordering.stable else ordering.running_key(job, now)
                    # Fractions are not stopped for others: freeing one may free no device.
                    gain = sum(s.milli // GPU for s in _allocation(job).shares if s.node == node)
                    if gain:
                        self.jobs.append((key, job, gain))
        self.jobs.sort(key=lambda victim: -victim[0])
        free = view.capacity.free_on(node)
        self.thresholds: list[int | None] = [None] * (free + 1)
        for key, _, gain in self.jobs:
            self.thresholds += [key] * gain


def _allocation(job: JobView) -> Allocation:
    assert job.allocation is not None
    return job.allocation
