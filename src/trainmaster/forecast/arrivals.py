"""Jobs that are still to be submitted: blocks of the past week, put together anew.

A block keeps its hours of the day and everything that was submitted in it, so that bursts and the
rhythm of the day survive.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from trainmaster.model.job import Deadline, Job
from trainmaster.model.units import SECOND
from trainmaster.sim.snapshot import WEEK, Past

HOUR: Final = 3_600 * SECOND
DAY: Final = 24 * HOUR
BLOCK: Final = 6 * HOUR
"""Length of the blocks; a past that is shorter gives blocks of its own length."""

NEW: Final = "new job "
"""Names of drawn jobs begin so."""


class Arrivals:
    """Draws arrivals block by block, for as long as a run goes on.

    Args:
        past: jobs submitted in the week before `now`, in order.
        now: the instant of the forecast, ns.
        end: no job is submitted from this instant on, ns.
        first: sequence number of the first drawn job.
        duration: draws the run time of a job that has not finished yet, ns.
        rng: chooses the blocks.

    Attributes:
        jobs: drawn so far, in order of submission; it grows with `extend`.
        durations: of the drawn jobs, ns, by sequence number.
        until: all jobs submitted before this instant are drawn.
    """

    def __init__(
        self,
        past: Sequence[Past],
        now: int,
        end: int,
        first: int,
        duration: Callable[[Job], int],
        rng: random.Random,
    ) -> None:
        self.jobs: list[Job] = []
        self.durations: dict[int, int] = {}
        self.until = now
        self._past = past
        self._submits = [each.job.submit for each in past]
        self._now = now
        self._end = end
        self._next = first
        self._duration = duration
        self._rng = rng
        span = now - self._submits[0] if past else 0
        self._span = min(span, WEEK)
        self._block = min(BLOCK, self._span)

    @property
    def open(self) -> bool:
        """Whether more jobs can be drawn: there is a past, and the end has not come."""
        return self._block > 0 and self.until < self._end

    def extend(self) -> None:
        """Draw the next block."""
        begin = self._source()
        shift = self.until - begin
        first = bisect_left(self._submits, begin)
        last = bisect_left(self._submits, min(begin + self._block, self._end - shift))
        for each in self._past[first:last]:
            self.jobs.append(self._moved(each.job, shift))
            self.durations[self._next] = self._duration(each.job) if each.ran is None else each.ran
            self._next += 1
        self.until += self._block

    def _source(self) -> int:
        """Where the next block is taken from: the same hours of one of the days before, or where
        less than a day is known, anywhere."""
        days = self._span // DAY
        if not days or self._block < BLOCK:
            return self._now - self._block - self._rng.randint(0, self._span - self._block)
        hours = (self.until - self._now) % DAY
        return self._now + hours - DAY * self._rng.randint(1, days)

    def _moved(self, job: Job, shift: int) -> Job:
        """The job again, `shift` ns later."""
        return replace(
            job,
            id=f"{NEW}{self._next}",
            sequence=self._next,
            submit=job.submit + shift,
            deadlines=tuple(Deadline(each.at + shift, each.value) for each in job.deadlines),
            depends_on=(),
            not_before=job.not_before + shift if job.not_before else 0,
        )
