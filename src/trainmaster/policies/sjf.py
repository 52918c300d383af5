"""Shortest job first, without preemption."""

from __future__ import annotations

from trainmaster.policies.base import Policy
from trainmaster.policies.parts.ordering import ShortestFirst


class Sjf(Policy):
    """The shortest waiting job first, by its predicted time; whatever fits starts."""

    name = "sjf"
    source = "textbook; as in Tiresias (NSDI'19) and Helios (SC'21) as a baseline"

    def compose(self) -> None:
        """Order by predicted time left."""
        self.ordering = ShortestFirst()
