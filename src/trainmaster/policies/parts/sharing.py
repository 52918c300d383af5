"""Sharing: whose turn it is among tenants, wrapped around any order.

`DominantShare` puts the tenant with the smallest share first; inside a tenant the
wrapped order decides. The level of a running job is its tenant's share up to and
including it, so a tenant's latest jobs give way first; the level of a waiting job is its
tenant's share if it started. A job may displace another only if that leaves its tenant
below the other's level: equal tenants never take turns evicting each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.model.ports import ClusterView, JobView, Ordering
from trainmaster.policies.parts.ordering import Order

SCALE = 1 << 20
"""Resolution of a share relative to one milli-GPU of a tenant of weight 1."""

INNER_BITS = 192
"""Bits that hold the wrapped order's key."""

BEHIND = 1 << INNER_BITS - 1
"""Puts waiting jobs behind the running ones of the same share."""


class DominantShare(Order):
    """Smallest share (GPUs held / weight) first, then the wrapped order.

    Args:
        inner: order inside a tenant.
        preemptive: whether a tenant above its share gives way to one below.

    Source: Ghodsi et al., Dominant Resource Fairness, NSDI'11, section 4.
    """

    stable = False

    def __init__(self, inner: Ordering, preemptive: bool) -> None:
        self.inner = inner
        self.preemptive = preemptive
        self.uses_estimates = inner.uses_estimates
        self._allocated: Mapping[str, int] = {}
        self._weights: Mapping[str, float] = {}
        self._view: ClusterView | None = None
        self._levels: dict[JobView, int] | None = None

    def pending_key(self, job: JobView, now: int) -> int:
        """The wrapped order's."""
        return self.inner.pending_key(job, now)

    def challenge(self, job: JobView, now: int) -> int:
        """(share of the tenant with this job running, the wrapped order's key): behind every
        running job of the same share."""
        tenant = job.job.tenant
        level = self._level(self._allocated.get(tenant, 0) + job.gpus, tenant)
        return (level << INNER_BITS) + BEHIND + job.pending_key

    def running_key(self, job: JobView, now: int) -> int:
        """(share of the tenant up to this job, submission)."""
        if self._levels is None:
            self._levels = self._work_out_levels()
        return self._levels.get(job, 0) << INNER_BITS | Order.pending_key(self, job, now)

    def apart(self, job: JobView) -> int:
        """As in the wrapped order."""
        return self.inner.apart(job)

    def next_change(self, job: JobView, now: int) -> int | None:
        """Levels are worked out when they are read."""
        return None

    def finished(self, job: JobView, now: int) -> None:
        """Pass on to the wrapped order."""
        self.inner.finished(job, now)

    def refresh(self, view: ClusterView) -> None:
        """Look at the shares as they are now; levels are worked out when one is asked for."""
        self._allocated, self._weights, self._view = view.allocated, view.weights, view
        self._levels = None

    def memory(self) -> dict[str, Any]:
        """The levels that were looked at last: until the next decision they are not refreshed."""
        if self._levels is None:
            return {}
        return {"levels": [[job.job.id, level] for job, level in self._levels.items() if job.allocation]}

    def recall(self, memory: Mapping[str, Any], view: ClusterView, jobs: Mapping[str, JobView]) -> None:
        """Go on with these."""
        self.refresh(view)
        if "levels" in memory:
            self._levels = {jobs[name]: level for name, level in memory["levels"]}

    def _work_out_levels(self) -> dict[JobView, int]:
        """For each job that holds GPUs, its tenant's share up to and including it."""
        totals: dict[str, int] = {}
        levels = {}
        holders = () if self._view is None else self._view.holders
        for job in sorted(holders, key=lambda job: (job.job.submit, job.job.sequence)):
            tenant = job.job.tenant
            total = totals[tenant] = totals.get(tenant, 0) + job.gpus
            levels[job] = self._level(total, tenant)
        return levels

    def _level(self, milli: int, tenant: str) -> int:
        return int(milli * SCALE / self._weights.get(tenant, 1.0))
