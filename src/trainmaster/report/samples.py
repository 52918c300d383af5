"""Small samples: for how many jobs a percentile stands."""

from __future__ import annotations

from dataclasses import dataclass

from .records import Run
from .text import count, plural

FEW_JOBS = 10
"""A tail of fewer jobs is counted, one of more named by its share alone."""
SMALL_SAMPLE = 100
"""With fewer jobs, p99 is a single one of them."""


def beyond(share: float, finished: float) -> int:
    """How many jobs a percentile is about: those from `sorted[int(share n)]` on.

    >>> beyond(0.99, 94), beyond(0.99, 100), beyond(0.99, 250), beyond(0.9, 94)
    (1, 1, 3, 10)
    """
    return int(finished) - int(share * finished)


@dataclass(frozen=True)
class Slowest:
    """The slowest hundredth of a run's jobs, as the subject of a sentence.

    >>> Slowest(94).take("3 h"), Slowest(250).take("3 h")
    ('the slowest job (1 of 94) takes 3 h', 'the slowest 1 % (3 of 250 jobs) take 3 h or longer')
    """

    finished: float | None

    @property
    def single(self) -> bool:
        """Whether p99 is the time of one job."""
        return self.finished is not None and beyond(0.99, self.finished) == 1

    @property
    def name(self) -> str:
        if self.finished is None:
            return "the slowest 1 % of the jobs"
        tail = beyond(0.99, self.finished)
        if tail == 1:
            return f"the slowest job (1 of {count(self.finished)})"
        if tail < FEW_JOBS:
            return f"the slowest 1 % ({tail} of {plural(self.finished, 'job')})"
        return "the slowest 1 % of the jobs"

    @property
    def short(self) -> str:
        return "the slowest job" if self.single else "the slowest 1 %"

    def verb(self, plain: str) -> str:
        """A verb that agrees with the subject."""
        return f"{plain}s" if self.single else plain

    def take(self, time: str) -> str:
        return f"{self.name} {self.verb('take')} {self.at_least(time)}"

    def at_least(self, time: str) -> str:
        return time if self.single else f"{time} or longer"


def slowest(run: Run) -> Slowest:
    return Slowest(run["finished"])


def small_sample(run: Run) -> str:
    """A warning where there are too few jobs for percentiles, else ""."""
    finished = run["finished"]
    if not finished or finished >= SMALL_SAMPLE:
        return ""
    tenth = beyond(0.9, finished)
    ninety = "too" if tenth == 1 else f"that of the {_ordinal(tenth)} slowest"
    alone = f"p99 is the time of the slowest job alone, p90 {ninety}"
    return f"{plural(finished, 'job')}: {alone}, and one long job can move a mean."


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(number) for number in (2, 3, 4, 10)]
    ['2nd', '3rd', '4th', '10th']
    """
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"
