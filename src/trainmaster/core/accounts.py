"""What each tenant holds and waits for, kept up to date job by job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.core.state import JobState


class Account:
    """One tenant. Implements `TenantView`.

    Attributes:
        held: milli-GPUs of its holders.
        waiting: milli-GPUs that its pending jobs ask.
        jobs: its holders by id, in the order in which they got their GPUs.
        held_at: milli-GPUs of its holders by priority.
    """

    __slots__ = ("held", "held_at", "jobs", "waiting")

    def __init__(self) -> None:
        self.held = self.waiting = 0
        self.jobs: dict[str, JobState] = {}
        self.held_at: dict[int, int] = {}

    def hold(self, job: JobState) -> None:
        """The job holds its GPUs from now on."""
        self.held += job.gpus
        self.jobs[job.job.id] = job
        priority = job.job.priority
        self.held_at[priority] = self.held_at.get(priority, 0) + job.gpus

    def unhold(self, job: JobState) -> None:
        """The job gave them up, or is about to."""
        self.held -= job.gpus
        del self.jobs[job.job.id]
        left = self.held_at[job.job.priority] - job.gpus
        if left:
            self.held_at[job.job.priority] = left
        else:
            del self.held_at[job.job.priority]
