"""Quantile curves: how long jobs run, how many jobs a burst has.

Both are evaluated at evenly spread quantiles instead of independent draws, so that a week
meets the same figures as a year: the heaviest hundredth of the jobs makes half of the
demand, and with independent draws a week's demand would vary by a third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trainmaster.model.errors import InputError
from trainmaster.traces.synth.preset import Arrivals, DurationCurve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GRID: Final = (np.arange(20_000) + 0.5) / 20_000
"""Quantiles for numerical means of what lies below the tail."""


def bisect(excess: Callable[[float], float], low: float, high: float, steps: int = 50) -> float:
    """Where the growing function `excess` crosses 0 between `low` and `high` (an end if it does not)."""
    for _ in range(steps):
        middle = (low + high) / 2
        if excess(middle) > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def logit(share: Floats) -> Floats:
    """Log-odds: a line in them is a log-logistic distribution of the logarithm's exponential."""
    return np.log(share) - np.log1p(-share)


class Durations:
    """The quantile function of a `DurationCurve`.

    >>> curve = Durations(DurationCurve(60, 1144, 254758, 13136, 1.5, 3.5e6))
    >>> curve(np.array([0.1, 0.5, 0.99])).round().tolist()
    [60.0, 1144.0, 254758.0]
    """

    def __init__(self, curve: DurationCurve) -> None:
        self.curve = curve
        low, high = np.log(curve.median_s), np.log(curve.p99_s)
        at_low, at_high = self._mean(low), self._mean(high)
        if not at_low <= curve.mean_s <= at_high:
            raise InputError(
                f"no curve with this median and p99 has a mean of {curve.mean_s:g} s",
                mend=f"between {at_low:.0f} and {at_high:.0f} s",
            )
        self.log_p90 = bisect(lambda log_p90: self._mean(log_p90) - curve.mean_s, low, high)

    def __call__(self, share: Floats) -> Floats:
        """Seconds that a `share` of the jobs (between 0 and 1) does not exceed."""
        return np.where(share < 0.99, self._body(share, self.log_p90), self._tail((1 - share) / 0.01))

    def _body(self, share: Floats, log_p90: float) -> Floats:
        curve = self.curve
        shares = np.array([0.1, 0.5, 0.9, 0.99])
        logs = np.array([np.log(curve.p10_s), np.log(curve.median_s), log_p90, np.log(curve.p99_s)])
        knots, at = logit(shares), logit(np.minimum(share, 0.99))
        slope = (logs[1] - logs[0]) / (knots[1] - knots[0])
        below = logs[0] + slope * np.minimum(at - knots[0], 0)
        return np.asarray(np.exp(np.where(at < knots[0], below, np.interp(at, knots, logs))))

    def _tail(self, rest: Floats) -> Floats:
        """Truncated Pareto; `rest` from 1 (the 99 % point) down to 0 (the longest)."""
        curve = self.curve
        floor = (curve.p99_s / curve.longest_s) ** curve.tail_index
        survival = floor + (1 - floor) * np.clip(rest, 0, 1)
        return np.asarray(curve.p99_s * survival ** (-1 / curve.tail_index))

    def _mean(self, log_p90: float) -> float:
        # The tail is smooth in `rest`, but steep near 0: squares put more points there.
        edges = np.linspace(0, 1, 4001) ** 2
        tail = np.sum(np.diff(edges) * self._tail((edges[:-1] + edges[1:]) / 2))
        return float(0.99 * self._body(0.99 * _GRID, log_p90).mean() + 0.01 * tail)


def burst_sizes(arrivals: Arrivals, share: Floats, tail: float) -> Ints:
    """Jobs in each burst, for bursts at the quantiles `share`.

    Single jobs come first (so many that `burst_share` holds), then 2 + a log-logistic number
    with exponent `tail`, scaled so that the mean over just these bursts is `burst_mean`.
    """
    alone = _share_of_singles(arrivals)
    several = share > alone
    inside = np.clip((share[several] - alone) / (1 - alone), 1e-9, 1 - 1e-9)
    shape = np.exp(tail * logit(inside))

    def extra(log_scale: float) -> Floats:
        return np.asarray(np.floor(np.minimum(np.exp(log_scale) * shape, arrivals.largest_burst - 2)))

    sizes = np.ones(len(share), dtype=np.int64)
    if len(shape):
        scale = bisect(lambda log: float(extra(log).mean()) + 2 - arrivals.burst_mean, -12.0, 8.0, steps=40)
        sizes[several] = 2 + extra(scale).astype(np.int64)
    return sizes


def _share_of_singles(arrivals: Arrivals) -> float:
    """Share of the bursts that are a single job, from the share of the jobs that are one."""
    singles, bursts = 1 - arrivals.burst_share, arrivals.burst_share / arrivals.burst_mean
    return singles / (singles + bursts)


def mean_burst(arrivals: Arrivals) -> float:
    """Mean number of jobs over bursts and single jobs."""
    return 1 / (1 - arrivals.burst_share + arrivals.burst_share / arrivals.burst_mean)


def places(score: Floats) -> Ints:
    """Place of each entry in growing order, from 0."""
    place = np.empty(len(score), dtype=np.int64)
    place[np.argsort(score, kind="stable")] = np.arange(len(score))
    return place


def even_quantiles(score: Floats, rng: np.random.Generator) -> Floats:
    """One quantile for each entry, in the order of the scores: evenly spread with a jitter of one place.

    The jitters are counted from the highest score, so that the top keeps its draws when
    entries are added.
    """
    count = len(score)
    place = places(score)
    jitter = rng.random(count)[count - 1 - place]
    return np.clip((place + 1 - jitter) / count, 1e-9, 1 - 1e-12)
