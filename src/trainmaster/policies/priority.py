"""Priority classes with ageing."""

from __future__ import annotations

from trainmaster.model.units import LONGEST_S, to_ns
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.backfill import Greedy
from trainmaster.policies.parts.ordering import PriorityClasses
from trainmaster.policies.parts.preemption import Evict


class Priority(Policy):
    """Higher priority first; waiting counts as priority, so that nothing starves."""

    name = "priority"
    source = "common practice (Slurm's age factor, Kubernetes' PriorityClass)"
    limits = "Ageing moves a job forward in the queue; it doesn't let it displace running jobs."
    preemptive = True
    knobs = (
        Knob(
            "ageing_s",
            86_400.0,
            "waiting time worth one priority, seconds; 0 = no ageing",
            low=0,
            high=LONGEST_S,
        ),
        Knob("preempt", True, "whether a strictly higher priority displaces running jobs"),
    )

    def compose(self) -> None:
        """Order by class and age."""
        preempt = bool(self.settings["preempt"])
        self.ordering = PriorityClasses(to_ns(self.number("ageing_s")), preempt)
        # Who is next (with age) and who gives way (without) differ: one greedy walk can't do both.
        self.walk = Evict() if preempt else Greedy()
