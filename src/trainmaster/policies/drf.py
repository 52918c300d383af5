"""Dominant resource fairness between tenants."""

from __future__ import annotations

from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.backfill import Greedy
from trainmaster.policies.parts.ordering import Order
from trainmaster.policies.parts.preemption import Evict
from trainmaster.policies.parts.sharing import DominantShare


class Drf(Policy):
    """The tenant with the smallest share of the GPUs first; first come first served inside.

    A tenant above its share gives way to one below it, its latest jobs first.
    """

    name = "drf"
    source = "Ghodsi et al., Dominant Resource Fairness: Fair Allocation of Multiple Resource Types, NSDI'11"
    limits = "GPUs are the only resource, so a share is a share of GPUs; it looks at this instant only."
    preemptive = True
    knobs = (Knob("preempt", True, "whether tenants above their share give way to tenants below"),)

    def compose(self) -> None:
        """Wrap first come first served into shares."""
        preempt = bool(self.settings["preempt"])
        self.by_tenant = True
        self.ordering = DominantShare(Order(), preempt)
        # Shares move with every step: the greedy walk of a pool, which ranks all jobs once,
        # would turn them over each time.
        self.walk = Evict() if preempt else Greedy()
