"""The general-purpose policy: queues with quotas, priorities, gangs, promises, few evictions."""

from __future__ import annotations

from trainmaster.model.ports import JobView
from trainmaster.model.units import LONGEST_S, to_ns
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.ordering import Order, by_submit
from trainmaster.policies.parts.turns import Turns

LOWEST = 1 << 31


class ByPriority(Order):
    """Inside a queue: higher priority first, then first come first served."""

    preemptive = True
    uses_estimates = True

    def pending_key(self, job: JobView, now: int) -> int:
        """(priority, submission)."""
        return by_submit(LOWEST - job.job.priority, job)


class Standard(Policy):
    """Queues take turns by guarantee and share; priority, then submission inside a queue.

    Without queues in the cluster file, every tenant is a queue of equal weight.
    """

    name = "standard"
    source = (
        "composed of common practice: quotas with borrowing and reclaim as in Kueue and KAI, EASY backfill "
        "(Mu'alem and Feitelson, IEEE TPDS 2001)"
    )
    limits = "It looks at this instant: fairness over time is not its aim."
    preemptive = True
    features = ("fair-share", "priorities", "quota", "reservation")
    knobs = (
        Knob(
            "promise_s",
            0.0,
            "waiting time after which the oldest waiting job of a kind of GPU is promised the GPUs that get "
            "free first, seconds",
            low=0,
            high=LONGEST_S,
        ),
        Knob("preempt", True, "whether running jobs may be stopped for others"),
    )

    def compose(self) -> None:
        """Queues that take turns, on any placement."""
        self.by_tenant = True
        self.ordering = ByPriority()
        self.walk = Turns(to_ns(self.number("promise_s")), preempt=bool(self.settings["preempt"]))
