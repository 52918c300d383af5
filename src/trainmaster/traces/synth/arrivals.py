"""When jobs are submitted: users work in sessions, and each session submits bursts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from trainmaster.traces.synth.curves import Floats, Ints, bisect, burst_sizes, even_quantiles
from trainmaster.traces.synth.preset import Arrivals
from trainmaster.traces.synth.streams import Streams

BURST_GAP_S: Final = 600.0
"""Submissions of one user that are less apart belong to the same burst."""

_REST_S: Final = 1.5 * BURST_GAP_S
"""Shortest time between two bursts of one user."""

_LONGEST_BURST_S: Final = 5400.0
"""A burst that would last longer comes from a script, with shorter gaps."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """One entry for each burst (single jobs included), sessions one after another.

    Args:
        session: index of its session.
        user: index of its user.
        jobs: number of jobs.
        start: first submission, seconds; may lie beyond the end of the trace.
        gaps: one entry for each *job*: seconds since the previous job of the burst.
    """

    session: Ints
    user: Ints
    jobs: Ints
    start: Floats
    gaps: Floats

    @property
    def first(self) -> Ints:
        """Index of the first job of each burst."""
        return np.cumsum(self.jobs) - self.jobs

    @property
    def submit(self) -> Floats:
        """Submission of each job, bursts one after another, seconds."""
        since = np.cumsum(self.gaps)
        return np.repeat(self.start - since[self.first], self.jobs) + since


def hourly_rates(arrivals: Arrivals, hours: int) -> Floats:
    """Relative rate of each hour; time 0 is a Monday at midnight."""
    hour = np.arange(hours)
    day = 1 + arrivals.day_amplitude * np.cos(2 * np.pi * (hour + 0.5 - arrivals.peak_hour) / 24)
    return np.asarray(day * np.where(hour // 24 % 7 >= 5, arrivals.weekend, 1.0))


def make_bursts(
    arrivals: Arrivals, streams: Streams, count: int, activity: Floats, span_s: float, tail: float
) -> Bursts:
    """The first `count` bursts; a larger count starts with the same ones.

    Args:
        activity: share of the sessions of each user.
        span_s: length of the trace, seconds.
        tail: exponent of the burst sizes, see `burst_sizes`.
    """
    members = streams("session bursts").geometric(1 / arrivals.session_bursts, count)
    session = np.repeat(np.arange(count), members)[:count]
    sessions = int(session[-1]) + 1
    vigour = streams("session vigour").standard_normal(sessions)[session]
    vigour += streams("burst vigour").standard_normal(count)
    jobs = burst_sizes(arrivals, even_quantiles(vigour, streams("burst size")), tail)
    user = np.searchsorted(np.cumsum(activity), streams("session user").random(sessions))
    user = np.minimum(user, len(activity) - 1)[session]

    gaps = _gaps(arrivals, streams, jobs)
    lasting = np.add.reduceat(gaps, np.cumsum(jobs) - jobs)
    pause = _REST_S + arrivals.pause_s * np.exp(1.5 * streams("pause").standard_normal(count))
    since = _since_first(session, lasting + pause)
    start = streams("session start").random(sessions)[session] * span_s + since
    start = _on_the_clock(arrivals, start % span_s, span_s)
    return Bursts(session, user, jobs, _one_at_a_time(user, start, lasting + _REST_S), gaps)


def _gaps(arrivals: Arrivals, streams: Streams, jobs: Ints) -> Floats:
    """Seconds between jobs of a burst (0 for its first)."""
    scale = arrivals.gap_s * np.exp(1.2 * streams("burst gap").standard_normal(len(jobs)))
    scale = np.minimum(scale, _LONGEST_BURST_S / jobs)
    each = np.repeat(scale, jobs) * streams("job gap").exponential(1.0, int(jobs.sum()))
    gaps: Floats = np.minimum(each, 0.9 * BURST_GAP_S)
    gaps[np.cumsum(jobs) - jobs] = 0.0
    return gaps


def _since_first(session: Ints, lengths: Floats) -> Floats:
    """Sum of the lengths of the earlier bursts of the same session."""
    before = np.cumsum(lengths) - lengths
    first = np.flatnonzero(np.diff(session, prepend=-1))
    return np.asarray(before - np.repeat(before[first], np.diff(np.append(first, len(session)))))


def _on_the_clock(arrivals: Arrivals, activity_s: Floats, span_s: float) -> Floats:
    """Even time to clock time, which passes slowly when few people work.

    Independent even instants become an inhomogeneous Poisson process, and the pauses of a
    session become longer at night.
    """
    edges = np.append(np.arange(0, span_s, 3600.0), span_s)
    done = np.concatenate([[0.0], np.cumsum(hourly_rates(arrivals, len(edges) - 1) * np.diff(edges))])
    return np.asarray(np.interp(activity_s / span_s * done[-1], done, edges))


def _one_at_a_time(user: Ints, start: Floats, lasting: Floats) -> Floats:
    """Starts moved later where a user would begin a burst before the last one was over."""
    order = np.lexsort((start, user))
    moved = np.empty_like(start)
    for mine in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
        before = np.cumsum(lasting[mine]) - lasting[mine]
        moved[mine] = np.maximum.accumulate(start[mine] - before) + before
    return moved


def expected_dispersion(arrivals: Arrivals, bursts: Bursts, span_s: float) -> float:
    """Variance/mean of the hourly counts, were the sessions laid at other instants.

    For a Poisson process of clusters it is the sum of squares of each cluster's jobs in an
    hour over the number of jobs; the day and week pattern adds the rate times its squared
    coefficient of variation. Taken from the sessions, not from the counts, it is smooth in
    the exponent of the burst sizes even for a short trace.
    """
    hour = np.floor(bursts.submit / 3600.0).astype(np.int64)
    session = np.repeat(bursts.session, bursts.jobs)
    edge = np.flatnonzero((np.diff(hour, prepend=-1) != 0) | (np.diff(session, prepend=-1) != 0))
    together = np.diff(np.append(edge, len(hour))).astype(np.float64)
    hours = max(1, round(span_s / 3600.0))
    pattern = hourly_rates(arrivals, hours)
    rate = len(hour) / hours
    return float((together**2).sum() / len(hour) + rate * pattern.var() / pattern.mean() ** 2)


def solve_tail(arrivals: Arrivals, streams: Streams, count: int, activity: Floats, span_s: float) -> float:
    """The exponent of the burst sizes that gives the preset's hourly dispersion.

    Limited to what bursts can do: below, all are alike; above, one would be the whole trace.
    """

    def excess(tail: float) -> float:
        bursts = make_bursts(arrivals, streams, count, activity, span_s, tail)
        return expected_dispersion(arrivals, bursts, span_s) - arrivals.hourly_dispersion

    return bisect(excess, 0.2, 1.5, steps=10)
