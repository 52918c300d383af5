"""Debug runs first: a policy of one's own, in one file.

Somebody who tries out a change wants an answer at once. A job that asks for few GPUs and
declares a short run time goes ahead of all others, and running jobs give way to it. A job
that runs longer than it declared loses the privilege at that very instant.

    trainmaster simulate week.csv.gz --nodes 32 --gpus-per-node 8 \
        --policy 'fifo(backfill=greedy),examples/my_policy.py,examples/my_policy.py(gpus=1)'
"""

from __future__ import annotations

from trainmaster.model.ports import TIE_BITS, JobView
from trainmaster.model.units import to_milli, to_ns
from trainmaster.policies import Knob, Policy
from trainmaster.policies.parts.ordering import LATEST, TIME_BITS, Order, by_submit

DEBUG, BATCH = 0, 1
"""The classes; the smaller goes first."""


class ClaimsFirst(Order):
    """Jobs that claim to be small and short first, then the others; by submission inside.

    Args:
        gpus: most milli-GPUs of a debug run.
        run_time: longest declared run time of a debug run, ns.
    """

    preemptive = True

    def __init__(self, gpus: int, run_time: int) -> None:
        self.gpus = gpus
        self.run_time = run_time

    def pending_key(self, job: JobView, now: int) -> int:
        """(class, submission). Constant while the job waits: its attained time stands still."""
        return by_submit(self._class(job, now), job)

    def challenge(self, job: JobView, now: int) -> int:
        """After every running job of the same class: only debug runs displace, and only batch jobs."""
        return self._class(job, now) << TIME_BITS + TIE_BITS | LATEST

    def next_change(self, job: JobView, now: int) -> int | None:
        """The instant at which a debug run has used up what it declared."""
        if self._class(job, now) == BATCH or job.job.declared is None:
            return None
        return now + job.job.declared - job.attained(now)

    def _class(self, job: JobView, now: int) -> int:
        declared = job.job.declared
        if declared is None or declared > self.run_time or job.gpus > self.gpus:
            return BATCH
        return DEBUG if job.attained(now) < declared else BATCH


class DebugFirst(Policy):
    """Small jobs that declare a short run time first; others give way to them."""

    name = "debug-first"
    preemptive = True
    source = "common practice: a queue for debugging"
    limits = "It believes what users declare until they exceed it."
    knobs = (
        Knob("gpus", 2.0, "most GPUs of a debug run", low=0),
        Knob("declared_s", 3_600.0, "longest declared run time of a debug run, seconds", low=1),
    )

    def compose(self) -> None:
        """Name the ordering; all other parts keep their defaults."""
        self.ordering = ClaimsFirst(to_milli(self.number("gpus")), to_ns(self.number("declared_s")))
