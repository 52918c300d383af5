"""Shortest remaining service first."""

from __future__ import annotations

from trainmaster.policies.base import Policy
from trainmaster.policies.parts.ordering import ShortestRemainingService


class Srsf(Policy):
    """The job with the least predicted time left x GPUs first; others give way."""

    name = "srsf"
    source = "Gu et al., Tiresias, NSDI'19, section 2.2; Muri, SIGCOMM'22"
    preemptive = True

    def compose(self) -> None:
        """Order by predicted GPU-time left."""
        self.ordering = ShortestRemainingService()
