"""Ordering: who is next, and who gives way. Integer keys, smaller first.

`Order` is the base to build on. A key is `rank(value, job)`: the value, then the job's
sequence number as the tie-break.
"""

from __future__ import annotations

from trainmaster.model.ports import TIE_BITS, ClusterView, JobView

TIME_BITS = 64
"""Bits that hold an instant inside a key made of several parts."""

LATEST = (1 << TIME_BITS + TIE_BITS) - 1
"""The largest (instant, sequence) part of a key."""


def rank(value: int, job: JobView) -> int:
    """A total key from a value and the job's sequence number."""
    return value << TIE_BITS | job.job.sequence


def by_submit(level: int, job: JobView) -> int:
    """A key by level, then submission, then sequence."""
    return (level << TIME_BITS | job.job.submit) << TIE_BITS | job.job.sequence


class Order:
    """First come first served, never preempting: the base of all orders."""

    preemptive = False
    stable = True
    uses_estimates = False

    def pending_key(self, job: JobView, now: int) -> int:
        """Position in the queue; constant while the job waits."""
        return rank(job.job.submit, job)

    def challenge(self, job: JobView, now: int) -> int:
        """The pending job's key in terms of running keys."""
        return job.pending_key

    def running_key(self, job: JobView, now: int) -> int:
        """Who has a larger one gives way; constant while the job runs."""
        return self.pending_key(job, now)

    def next_change(self, job: JobView, now: int) -> int | None:
        """When the running key changes; None = never."""
        return None

    def apart(self, job: JobView) -> int:
        """One queue for all jobs that ask the same."""
        return 0

    def finished(self, job: JobView, now: int) -> None:
        """Nothing to learn."""

    def refresh(self, view: ClusterView) -> None:
        """Nothing to prepare."""


class ShortestFirst(Order):
    """By estimated work left; running jobs are left alone."""

    uses_estimates = True

    def pending_key(self, job: JobView, now: int) -> int:
        """Estimated work left, ns."""
        return rank(job.remaining(now), job)


class ShortestRemainingTime(ShortestFirst):
    """By estimated time left, preempting. A running job's key is its expected end,
    which stays constant while its time left shrinks."""

    preemptive = True

    def challenge(self, job: JobView, now: int) -> int:
        """The end the pending job would have if it ran from now on."""
        return job.pending_key + (now << TIE_BITS)

    def running_key(self, job: JobView, now: int) -> int:
        """Expected end."""
        return rank(job.expected_end(now), job)


class ShortestRemainingService(ShortestFirst):
    """By estimated time left x GPUs, preempting. Bigger gangs approach their end
    faster, so running keys move against each other and are worked out when read."""

    preemptive = True
    stable = False

    def pending_key(self, job: JobView, now: int) -> int:
        """Estimated GPU-time left, ns x milli-GPU."""
        return rank(job.remaining(now) * job.job.request.gpus, job)

    def running_key(self, job: JobView, now: int) -> int:
        """Estimated GPU-time left, ns x milli-GPU."""
        return self.pending_key(job, now)


class AttainedService(Order):
    """By levels of attained GPU-time, first come first served within a level.

    Args:
        limits: GPU-time at which a job drops to the next level, growing, in ns x
            milli-GPU.
    """

    preemptive = True

    def __init__(self, limits: list[int]) -> None:
        self.limits = limits

    def level(self, service: int) -> int:
        """Level of a job that has had `service` (ns x milli-GPU)."""
        for level, limit in enumerate(self.limits):
            if service < limit:
                return level
        return len(self.limits)

    def pending_key(self, job: JobView, now: int) -> int:
        """(level, submission)."""
        return by_submit(self.level(job.attained(now) * job.job.request.gpus), job)

    def next_change(self, job: JobView, now: int) -> int | None:
        """When the job reaches the limit of its level."""
        gpus = job.job.request.gpus
        attained = job.attained(now)
        level = self.level(attained * gpus)
        if level == len(self.limits):
            return None
        return now + -(-self.limits[level] // gpus) - attained


class PriorityClasses(Order):
    """By priority, ageing in the queue: `ageing` ns of waiting are worth one priority.

    Linear ageing keeps the order of any two waiting jobs, so the key is constant. Only
    a job of a strictly higher class displaces a running one, the youngest of the lowest
    class first.
    """

    LOWEST = 1 << 31

    def __init__(self, ageing: int, preemptive: bool) -> None:
        self.ageing = ageing
        self.preemptive = preemptive

    def pending_key(self, job: JobView, now: int) -> int:
        """Submission moved ahead by the job's priority; without ageing (priority, submission)."""
        if self.ageing == 0:
            return self.running_key(job, now)
        return rank(job.job.submit - job.job.priority * self.ageing, job)

    def apart(self, job: JobView) -> int:
        """A queue for each priority: an aged job that can't displace anybody stands before others
        that can."""
        return job.job.priority

    def challenge(self, job: JobView, now: int) -> int:
        """Just after every running job of the same class."""
        return self._class(job) << TIME_BITS + TIE_BITS | LATEST

    def running_key(self, job: JobView, now: int) -> int:
        """(class, submission)."""
        return by_submit(self._class(job), job)

    def _class(self, job: JobView) -> int:
        return self.LOWEST - job.job.priority


class RoundRobin(Order):
    """Who has waited longest is next; who has had its time slice gives way.

    Args:
        quantum: time slice, ns. A job within its slice is never displaced; after it,
            it runs on until somebody waits, and who ran over longest goes first.
    """

    preemptive = True

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum

    def pending_key(self, job: JobView, now: int) -> int:
        """Since when it waits."""
        return rank(job.pending_since, job)

    def challenge(self, job: JobView, now: int) -> int:
        """Before every job whose slice is over, after every other."""
        return LATEST

    def running_key(self, job: JobView, now: int) -> int:
        """Larger than any challenge once the slice is over, else smaller."""
        end = job.running_since + self.quantum
        if now < end:
            return rank(0, job)
        return (2 << TIME_BITS + TIE_BITS) - rank(end, job)

    def next_change(self, job: JobView, now: int) -> int | None:
        """The end of the slice."""
        end = job.running_since + self.quantum
        return end if now < end else None
