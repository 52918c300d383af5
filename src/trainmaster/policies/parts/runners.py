"""Running jobs that could be stopped, asked for by somebody who wants to know why none is."""

from __future__ import annotations

from bisect import bisect_left

from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView, ClusterView, JobView, Ordering
from trainmaster.model.units import GPU
from trainmaster.policies.parts.placement import Placement
from trainmaster.policies.parts.victims import allocation_of

Entry = tuple[int, int, JobView]
"""(running key, milli-GPUs that the job would free on the node, job)"""

Release = tuple[int, JobView]
"""(when the protection ends, ns, of which job)"""


class Runners:
    """Preemptible running jobs by node; the only node of a pool is number 0.

    Args:
        view, ordering: of the instant; the ordering's keys are up to date.
        pooled: whether only the number of GPUs counts.

    Attributes:
        weakest: the largest running key; None = nobody could be stopped.
        next_change: when the first running key changes, ns; None = none is known to.
    """

    def __init__(self, view: ClusterView, ordering: Ordering, pooled: bool) -> None:
        self._view, self._pooled = view, pooled
        self._on: dict[int, list[Entry]] = {}
        self._all: list[Entry] = []
        self._reach: dict[int, tuple[list[int], list[int]]] = {}
        self._protected: dict[int, list[Entry]] = {}
        now = view.now
        for job in view.running:
            if not job.job.request.preemptible:
                continue
            key = job.running_key if ordering.stable else ordering.running_key(job, now)
            self._all.append((key, job.gpus, job))
            for share in allocation_of(job).shares:
                # On nodes, fractions are not stopped for others: freeing one may free no device.
                milli = share.milli if pooled else share.milli // GPU * GPU
                side = self._protected if job.protected_until > now else self._on
                side.setdefault(share.node, []).append((key, milli, job))
        for entries in self._on.values():
            entries.sort(key=lambda entry: entry[0], reverse=True)
        for entries in (*self._protected.values(), self._all):
            entries.sort(key=_end)
        self.weakest = max((key for key, _, _ in self._all), default=None)
        changes = [ordering.next_change(job, now) for _, _, job in self._all] if ordering.stable else []
        self.next_change = min((at for at in changes if at is not None and at > now), default=None)

    def reach(self, nodes: int, challenge: int) -> int:
        """Milli-GPUs that can be free together on one of the nodes, whoever is weaker than
        `challenge` having been stopped."""
        keys, amounts = self._table(nodes)
        index = bisect_left(keys, -challenge)
        return amounts[index - 1] if index else 0

    def _table(self, nodes: int) -> tuple[list[int], list[int]]:
        """(− key, milli-GPUs): with everybody down to the key stopped, so many can be free."""
        known = self._reach.get(nodes)
        if known is not None:
            return known
        steps: list[tuple[int, int]] = []
        for node in range(len(self._view.cluster.nodes)):
            if not nodes >> node & 1:
                continue
            milli = self._free(node)
            steps.append((-(1 << 512), milli))
            for key, gain, _ in self._on.get(node, ()):
                milli += gain
                steps.append((-key, milli))
        keys: list[int] = []
        amounts: list[int] = []
        for key, milli in sorted(steps):
            if not amounts or milli > amounts[-1]:
                keys.append(key)
                amounts.append(milli)
        self._reach[nodes] = keys, amounts
        return keys, amounts

    def _free(self, node: int) -> int:
        capacity = self._view.capacity
        return capacity.free_milli if self._pooled else capacity.free_on(node) * GPU

    def release(self, nodes: int, challenge: int, need: int) -> Release | None:
        """When the first minimum run time ends with which `need` milli-GPUs could be free on one node."""
        found: list[JobView] = []
        for node, entries in self._protected.items():
            if not nodes >> node & 1:
                continue
            milli = self.reach(nodes, challenge) if self._pooled else self._stoppable(node, challenge)
            for key, gain, job in entries:
                if key > challenge:
                    milli += gain
                    if milli >= need:
                        found.append(job)
                        break
        first = min(found, key=_end_of, default=None)
        return None if first is None else (first.protected_until, first)

    def _stoppable(self, node: int, challenge: int) -> int:
        return self._free(node) + sum(gain for key, gain, _ in self._on.get(node, ()) if key > challenge)

    def release_for(
        self, capacity: CapacityView, placement: Placement, request: Request, challenge: int
    ) -> Release | None:
        """The same for a request that one node need not hold."""
        now = self._view.now
        weaker = [job for key, _, job in self._all if key > challenge]
        if not any(job.protected_until > now for job in weaker):
            return None
        trial = capacity.copy()
        for job in weaker:
            trial.give(allocation_of(job))
            if job.protected_until > now and placement.find(trial, request) is not None:
                return job.protected_until, job
        return None


def _end_of(job: JobView) -> tuple[int, int]:
    return job.protected_until, job.job.sequence


def _end(entry: Entry) -> tuple[int, int]:
    """The first whose protection ends first."""
    return _end_of(entry[2])
