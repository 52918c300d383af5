"""How long jobs will run: draws from what is known of jobs alike, given what they have run already.

The predictor gives each job a lognormal distribution. That is right for one job of which little
else is known, and wrong for a queue: jobs of one user come in batches that run for nearly the
same time, so that neighbours say more than any fitted curve, and what is wrong about one job of a
batch is wrong about all of them. So a run believes in the last so many jobs of a kind (tenant, user
and size), how many being drawn for each run and kind: sometimes only the last batch, sometimes
a hundred. Jobs that are still running count as longer than they have run so far (Kaplan and
Meier, "Nonparametric Estimation from Incomplete Observations", JASA 53, 1958). Where a kind tells
too little, the user's jobs of any size do, then all jobs, and beyond the longest seen the lognormal
distribution, cut off there.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Final

from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Estimate, Predictor
from trainmaster.sim.snapshot import Past

FEWEST: Final = 8
"""A kind of which less jobs have ended is not believed in."""

DEEPEST: Final = 100
"""A run believes in the last so many ended jobs of a kind at most, and in those that run since."""

LONGER: Final = 4
"""Nor is one of which less jobs ended after the time that the job at hand has run."""

ALIKE: Final = 0.6
"""Correlation of how late two jobs of a kind end, given what is known of the kind."""

_NORMAL = NormalDist()

_Kind = tuple[str, str, int]

_Seen = tuple[int, bool]
"""(how long a job ran, whether it had ended by then)."""


class Durations:
    """What is known of run times at an instant.

    Args:
        predictor: knows what the scheduler knows.
        past: jobs of the last week, in order of submission.
        attained: how long those in the system have run, ns, by id.
        now: the instant of the forecast, ns.
    """

    def __init__(
        self, predictor: Predictor, past: Sequence[Past], attained: Mapping[str, int], now: int
    ) -> None:
        self._predictor = predictor
        self._now = now
        self._estimates: dict[tuple[_Kind, int | None], Estimate] = {}
        self.exact = predictor.exact
        self.of_kind: dict[_Kind, list[_Seen]] = {}
        everything: list[_Seen] = []
        for each in past:
            ran = each.ran if each.ran is not None else attained.get(each.job.id, 0)
            if ran > 0:
                seen = (ran, each.ran is not None)
                everything.append(seen)
                for kind in (kind_of(each.job), _of_any_size(each.job)):
                    self.of_kind.setdefault(kind, []).append(seen)
        self.all = Curve(everything)
        nobody = Job("", 0, now, Request(0))
        self.general = Estimate(1) if self.exact else predictor.predict(nobody, 0, now)

    def estimate(self, job: Job) -> Estimate:
        """Median and spread of the run time of a job that has not started."""
        if self.exact:
            return self._predictor.predict(job, 0, self._now)
        key = (kind_of(job), job.declared)
        found = self._estimates.get(key)
        if found is None:
            found = self._estimates[key] = self._predictor.predict(job, 0, self._now)
        return found


class Draws:
    """The run times of one run.

    Args:
        durations: what is known.
        rng: of this run.
    """

    def __init__(self, durations: Durations, rng: random.Random) -> None:
        self._known = durations
        self._rng = rng
        self._curves: dict[_Kind, Curve | None] = {}
        self._common: dict[_Kind, float] = {}

    def draw(self, job: Job, attained: int) -> int:
        """A total run time of more than `attained`, ns."""
        known = self._known
        if known.exact:
            return max(known.estimate(job).total, attained + 1)
        level = self._level(kind_of(job))
        curves = (self._curve(kind_of(job)), self._curve(_of_any_size(job)), known.all)
        told = (curve for curve in curves if curve is not None and curve.longer(attained) >= LONGER)
        curve = next(told, None)
        drawn: float | None = None if curve is None else curve.quantile(attained, level)
        if drawn is None:
            estimate = known.estimate(job)
            longest = attained if curve is None else max(attained, curve.longest)
            if tail(longest, estimate) < 0.01:
                # So long that it is of no kind we know.
                estimate = known.general
            drawn = beyond(longest, estimate, level if curve is None else self._rng.random())
        return max(attained + 1, round(drawn))

    def _level(self, kind: _Kind) -> float:
        """A number from 0 to 1, each as likely as any other, but alike for jobs of a kind."""
        common = self._common.get(kind)
        if common is None:
            common = self._common[kind] = self._rng.gauss(0.0, 1.0)
        own = self._rng.gauss(0.0, 1.0)
        return _NORMAL.cdf(math.sqrt(ALIKE) * common + math.sqrt(1 - ALIKE) * own)

    def _curve(self, kind: _Kind) -> Curve | None:
        """The jobs that this run believes in; None = too few are known."""
        if kind not in self._curves:
            seen = self._known.of_kind.get(kind, ())
            curve = None
            ended = [at for at, (_, over) in enumerate(seen) if over]
            if len(ended) >= FEWEST:
                deepest = min(len(ended), DEEPEST)
                depth = math.exp(self._rng.uniform(math.log(FEWEST), math.log(deepest)))
                curve = Curve(seen[ended[-round(depth)] :])
            self._curves[kind] = curve
        return self._curves[kind]


class Curve:
    """Which part of jobs runs longer than so long, from jobs that ended and jobs that run on.

    Args:
        seen: (how long a job ran, whether it had ended by then).

    Attributes:
        longest: the longest time after which one ended.

    >>> curve = Curve([(10, True), (20, False), (30, True)])
    >>> curve.quantile(0, 0.2), curve.quantile(0, 0.9), curve.quantile(15, 0.1)
    (10, 30, 30)
    >>> curve.quantile(30, 0.5) is None  # nobody knows
    True
    """

    def __init__(self, seen: Sequence[_Seen]) -> None:
        ordered = sorted(seen)
        self._ends: list[int] = []
        # Minus the part that runs longer, so that it grows.
        self._left: list[float] = []
        left, at_risk = 1.0, len(ordered)
        for time, ended in ordered:
            if ended:
                left *= 1 - 1 / at_risk
                self._ends.append(time)
                self._left.append(-left)
            at_risk -= 1
        self.longest = self._ends[-1] if self._ends else 0

    def longer(self, attained: int) -> int:
        """How many ended later than after `attained`."""
        return len(self._ends) - bisect_left(self._ends, attained + 1)

    def quantile(self, attained: int, level: float) -> int | None:
        """The quantile `level` of the time after which jobs end that have run for `attained`; None
        = longer than anybody was seen to run."""
        first = bisect_left(self._ends, attained + 1)
        left = -self._left[first - 1] if first else 1.0
        at = bisect_left(self._left, -left * (1 - level), lo=first)
        return self._ends[at] if at < len(self._ends) else None


def kind_of(job: Job) -> _Kind:
    """Jobs of one kind are believed to be alike."""
    return (job.tenant, job.user, job.request.gpus)


def _of_any_size(job: Job) -> _Kind:
    return (job.tenant, job.user, 0)


def tail(attained: float, estimate: Estimate) -> float:
    """Probability that a run time exceeds `attained`.

    >>> tail(100, Estimate(100, 1.0))
    0.5
    """
    if attained <= 0:
        return 1.0
    if not estimate.spread:
        return float(attained < estimate.total)
    distance = (math.log(attained) - math.log(max(estimate.total, 1))) / estimate.spread
    # From the other side: 1 - cdf would be 0 far out.
    return 0.5 * math.erfc(distance / math.sqrt(2))


def beyond(attained: float, estimate: Estimate, level: float) -> float:
    """The quantile `level` (0 to 1) of a run time, given that it exceeds `attained`.

    >>> round(beyond(0, Estimate(100, 1.0), 0.5))
    100
    >>> round(beyond(100, Estimate(100, 1.0), 0.5))  # median of the upper half
    196
    """
    median, spread = estimate
    if not spread:
        return float(max(median, attained))
    left = tail(attained, estimate) * (1 - level)
    if left < 1e-300:
        # Beyond what a float holds. Twice as long is what predictors expect of such jobs.
        return attained * (1 + level)
    value = math.exp(math.log(max(median, 1)) - spread * _NORMAL.inv_cdf(min(left, 1 - 1e-16)))
    return max(value, attained)
