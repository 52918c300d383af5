"""Tiresias: discretized two-dimensional least attained service."""

from __future__ import annotations

from trainmaster.model.units import GPU, to_ns
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.ordering import AttainedService


class Las(Policy):
    """Jobs that have had little GPU-time first, in a few queues; no predictions needed.

    A job drops to the next queue when its GPUs x time reaches the queue's limit, which
    happens at that very instant. Within a queue the order is that of submission.
    """

    name = "las"
    source = "Gu et al., Tiresias, NSDI'19, section 3 (discretized 2D-LAS)"
    limits = "No promotion of starved jobs (PROMOTEKNOB = infinity, the paper's default)."
    preemptive = True
    knobs = (
        Knob("queues", 2, "number of queues", low=1, high=64),
        Knob("limit", 28_800.0, "GPU-seconds after which a job leaves the first queue", low=1, high=1e15),
        Knob(
            "factor", 4.0, "each further queue's limit is this many times the one before", low=1.001, high=1e3
        ),
    )

    def compose(self) -> None:
        """Set the limits of the queues."""
        limit, factor = self.number("limit"), self.number("factor")
        queues = int(self.settings["queues"])
        self.ordering = AttainedService([to_ns(limit * factor**step) * GPU for step in range(queues - 1)])
