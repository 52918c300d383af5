"""The walk through the queue of a pool that makes running jobs give way.

All jobs, running or not, in order; each takes what fits, and who runs and isn't chosen
stops.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.model.ports import ANYBODY, ClusterView, JobView, Ordering
from trainmaster.model.reason import Reason
from trainmaster.policies.parts.giving_way import by_key
from trainmaster.policies.parts.placement import Placement
from trainmaster.policies.parts.queue import Merged
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.victims import may_stop


class GreedyWalk:
    """The exact greedy walk of a pool."""

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        now = view.now
        if not ordering.stable:
            ordering.refresh(view)
        waiting = Merged(view, ordering)
        view.wake_on_release(None if waiting.key is None else ANYBODY)
        if waiting.key is None:
            return
        running = self._running(view, ordering)
        budget = view.capacity.free_milli + sum(
            job.job.request.gpus for _, job in running if may_stop(job, now)
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
            if not may_stop(job, now):
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

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: those who hold the GPUs come first, or may not be stopped."""
        return by_key(inquiry, job)

    @staticmethod
    def _running(view: ClusterView, ordering: Ordering) -> Sequence[tuple[int, JobView]]:
        """Running jobs, who gives way last first."""
        if ordering.stable:
            return view.running_order
        return sorted((ordering.running_key(job, view.now), job) for job in view.running)
