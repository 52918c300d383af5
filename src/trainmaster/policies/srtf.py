"""Shortest remaining time first."""

from __future__ import annotations

from trainmaster.policies.base import Policy
from trainmaster.policies.parts.ordering import ShortestRemainingTime


class Srtf(Policy):
    """The job with the least predicted time left first; longer running jobs give way."""

    name = "srtf"
    source = "textbook; SRTF in Tiresias (NSDI'19, section 2) and Muri (SIGCOMM'22)"
    preemptive = True

    def compose(self) -> None:
        """Order by predicted time left."""
        self.ordering = ShortestRemainingTime()
