"""First in, first out, with backfill as an option."""

from __future__ import annotations

from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.backfill import Blocking, Conservative, Easy, Greedy
from trainmaster.policies.parts.ordering import Order


class _WithEstimates(Order):
    uses_estimates = True


class Fifo(Policy):
    """First in, first out. What may start behind a job that can't is the `backfill`."""

    name = "fifo"
    source = (
        "Mu'alem and Feitelson, Utilization, Predictability, Workloads, and User Runtime Estimates in "
        "Scheduling the IBM SP2 with Backfilling, IEEE TPDS 2001 (easy, conservative)"
    )
    limits = "Reservations of conservative count free GPUs; nodes are only chosen at the start."
    knobs = (
        Knob(
            "backfill",
            "none",
            "what may pass a job that can't start: nothing; greedy = anything that fits; easy = what "
            "doesn't delay the first blocked job; conservative = what delays no job",
            choices=("none", "greedy", "easy", "conservative"),
        ),
        Knob("depth", 100, "waiting jobs that get a reservation under conservative", low=1),
    )

    def compose(self) -> None:
        """Choose the walk."""
        backfill = self.settings["backfill"]
        if backfill == "none":
            self.walk = Blocking()
        elif backfill == "greedy":
            self.walk = Greedy()
        else:
            self.ordering = _WithEstimates()
            self.walk = Easy() if backfill == "easy" else Conservative(int(self.settings["depth"]))
