"""Round robin in time slices."""

from __future__ import annotations

from trainmaster.model.units import LONGEST_S, to_ns
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.ordering import RoundRobin


class Timeslice(Policy):
    """Every job gets a time slice in turn; needs no predictions.

    A job within its slice is never stopped. After it, it runs on for as long as nobody
    waits; who ran over longest gives way first.
    """

    name = "timeslice"
    source = "Xiao et al., Gandiva: Introspective Cluster Scheduling for Deep Learning, OSDI'18, section 3"
    limits = "Time slicing only: no packing of two jobs on one GPU, no migration."
    preemptive = True
    knobs = (Knob("quantum_s", 3_600.0, "time slice, seconds", low=1, high=LONGEST_S),)

    def compose(self) -> None:
        """Set the quantum."""
        self.ordering = RoundRobin(to_ns(self.number("quantum_s")))
