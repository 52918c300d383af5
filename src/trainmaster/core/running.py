"""Running jobs in the order in which they would give way last."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.core.state import JobState


class RunningOrder:
    """(running key, job) pairs, sorted; jobs of equal keys by their sequence number."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[int, JobState]] = []

    def add(self, job: JobState) -> None:
        """Insert a job under its running key."""
        insort(self.entries, (job.running_key, job))

    def remove(self, job: JobState) -> None:
        """Take a job out; nothing happens if it is not in."""
        index = bisect_left(self.entries, (job.running_key, job))
        if index < len(self.entries) and self.entries[index][1] is job:
            del self.entries[index]
