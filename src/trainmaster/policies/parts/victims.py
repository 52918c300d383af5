"""An index of who could be stopped where, so that a decision looks at few nodes.

For each node the jobs that may be stopped are kept in order of running key, with the
*threshold* for each number of GPUs: the key of the strongest job that must go, weakest
first, to have them free. The node with the weakest threshold is at the top of one heap
per number of GPUs. Both are worked out anew when somebody asks, for nodes that were
touched since.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from trainmaster.model.allocation import Allocation
from trainmaster.model.ports import ClusterView, JobView, Ordering, Phase
from trainmaster.model.units import GPU

RUNNING = Phase.RUNNING

NOBODY = 1 << 256
"""Weaker than every job."""

Entry = tuple[int, int, int]
"""(− threshold, node, version of the node)."""


class Victims:
    """What could be stopped on one node.

    Attributes:
        jobs: (running key, job, whole GPUs it frees here), weakest first.
        free: wholly free GPUs.
        thresholds: entry i is the key of the strongest job that must go to have
            free + i + 1 GPUs.
    """

    __slots__ = ("free", "jobs", "thresholds")

    def __init__(self, jobs: list[tuple[int, JobView, int]], free: int) -> None:
        if len(jobs) > 1:
            jobs.sort(key=_key, reverse=True)
        self.jobs = jobs
        self.free = free
        self.thresholds: list[int] = []
        for key, _, gain in jobs:
            if gain == 1:
                self.thresholds.append(key)
            else:
                self.thresholds += (key,) * gain

    def offers(self, gpus: int, challenge: int) -> bool:
        """Whether `gpus` are free here, or held by jobs weaker than `challenge`."""
        index = gpus - self.free - 1
        return index < 0 or (index < len(self.thresholds) and self.thresholds[index] > challenge)

    def cost(self, gpus: int) -> int | None:
        """The key of the strongest job that must go to have `gpus` free; `NOBODY` = none must,
        None = it can't be done."""
        index = gpus - self.free - 1
        if index < 0:
            return NOBODY
        return self.thresholds[index] if index < len(self.thresholds) else None


class VictimIndex:
    """All nodes' victims. Call `begin` first in every decision, `refresh` after its steps."""

    def __init__(self) -> None:
        self._view: ClusterView
        self._ordering: Ordering
        self._victims: dict[int, Victims] = {}
        self._versions: list[int] = []
        # What each heap hasn't looked at yet is the log from its position on.
        self._touched: list[int] = []
        self._heaps: dict[int, list[Entry]] = {}
        self._positions: dict[int, int] = {}

    def begin(self, view: ClusterView, ordering: Ordering) -> set[int]:
        """Take up what happened since the last decision.

        Returns the nodes that changed to the good of those who wait.
        """
        self._view, self._ordering = view, ordering
        if not self._versions:
            self._versions = [0] * len(view.cluster.nodes)
        self.refresh()
        return view.improved()

    def refresh(self) -> None:
        """Take up the steps taken since the last call."""
        touched: Iterable[int] = self._view.touched()
        if not self._ordering.stable:
            self._ordering.refresh(self._view)
            touched = range(len(self._versions))
        for node in touched:
            self._victims.pop(node, None)
            self._versions[node] += 1
        self._touched.extend(touched)

    def on(self, node: int) -> Victims:
        """The victims on a node."""
        known = self._victims.get(node)
        if known is None:
            known = self._victims[node] = self._look(node)
        return known

    def weakest(self, gpus: int, challenge: int, eligible: int, count: int) -> list[int]:
        """Up to `count` nodes of the mask `eligible` where freeing `gpus` costs the weakest
        jobs, all of them weaker than `challenge`."""
        heap = self._heap(gpus)
        found: list[int] = []
        kept: list[Entry] = []
        while heap and len(found) < count and -heap[0][0] > challenge:
            entry = heappop(heap)
            if entry[2] != self._versions[entry[1]]:
                continue
            kept.append(entry)
            if eligible >> entry[1] & 1:
                found.append(entry[1])
        for entry in kept:
            heappush(heap, entry)
        return found

    # -- inside ---------------------------------------------------------------------------

    def _look(self, node: int) -> Victims:
        view, ordering = self._view, self._ordering
        now, stable = view.now, ordering.stable
        jobs: list[tuple[int, JobView, int]] = []
        for job in view.on_node(node):
            if job.phase is RUNNING and job.protected_until <= now and job.job.request.preemptible:
                gain, shares = job.gpus // GPU, allocation_of(job).shares
                if len(shares) > 1:
                    gain = sum(share.milli // GPU for share in shares if share.node == node)
                # Fractions are not stopped for others: freeing one may free no device.
                if gain:
                    key = job.running_key if stable else ordering.running_key(job, now)
                    jobs.append((key, job, gain))
        return Victims(jobs, view.capacity.free_on(node))

    def _heap(self, gpus: int) -> list[Entry]:
        heap = self._heaps.setdefault(gpus, [])
        position = self._positions.get(gpus, -1)
        versions, log = self._versions, self._touched
        if position == len(log):
            return heap
        nodes: Iterable[int] = set(log[position:]) if position >= 0 else range(len(versions))
        if position < 0 or len(heap) > 8 * len(versions) + 64:
            heap.clear()
            nodes = range(len(versions))
        for node in nodes:
            victims = self.on(node)
            index = gpus - victims.free - 1
            if 0 <= index < len(victims.thresholds):
                heappush(heap, (-victims.thresholds[index], node, versions[node]))
        if len(log) > 64 * len(versions) + 1024:
            log.clear()
            self._positions.clear()
        self._positions[gpus] = len(log)
        return heap


def may_stop(job: JobView, now: int) -> bool:
    """Whether the job may be asked to give way."""
    return job.phase is RUNNING and job.protected_until <= now and job.job.request.preemptible


def allocation_of(job: JobView) -> Allocation:
    """The GPUs of a job that holds some."""
    assert job.allocation is not None
    return job.allocation


def _key(victim: tuple[int, JobView, int]) -> int:
    return victim[0]
