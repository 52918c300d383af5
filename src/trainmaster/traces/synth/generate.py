"""Make a trace that meets a preset's figures."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import count as count_from
from typing import Final

import numpy as np

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.job import Job, Request
from trainmaster.model.numbers import whole
from trainmaster.model.units import GPU, SECOND
from trainmaster.traces.synth.arrivals import Bursts, make_bursts, solve_tail
from trainmaster.traces.synth.curves import Durations, Floats, Ints, even_quantiles, mean_burst, places
from trainmaster.traces.synth.people import Users, users_of
from trainmaster.traces.synth.preset import DAY_S, PRESETS, Preset, Statuses
from trainmaster.traces.synth.streams import Streams
from trainmaster.traces.trace import Trace, Truth

WALLTIMES_S: Final = tuple(
    3600.0 * hours for hours in (0.5, 1, 2, 4, 8, 12, 24, 48, 72, 96, 168, 336, 720, 1440)
)
"""What users declare: one of these, or a multiple of the last."""

STATUSES: Final = ("completed", "failed", "cancelled")

MOST_JOBS: Final = 5_000_000
MOST_GPUS: Final = 1_000_000
MOST_DAYS: Final = 3_660
"""A request for more jobs, demanded GPUs or days is refused: it would not fit in memory."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What every job is, in the order of generation (burst after burst)."""

    bursts: Bursts
    gpus: Ints
    duration_s: Floats
    rank: Floats
    """Share of the jobs that run shorter."""

    @property
    def gpu_seconds(self) -> float:
        return float((self.gpus * self.duration_s).sum())


def synthesize(
    preset: str, *, days: float, load: float, nodes: int, gpus_per_node: int = 8, seed: int = 0
) -> Trace:
    """A synthetic trace, shaped like a published one and labelled synthetic.

    How it is made: users (Zipf within tenants of unequal size) work in sessions that follow
    the day and the week; a session submits bursts of similar jobs; sizes and durations are
    ranks of scores that jobs of one burst, session and user share, put through the preset's
    quantile curves (a rank copula), so that the marginal figures hold whatever depends on
    what. The number of bursts is solved for, so that the GPU-seconds asked for, over the
    days, are `load` x the cluster: the load changes how many jobs and users there are, never
    how long jobs run. A job longer than the rest of the trace counts in full, as it does in
    the published statistics, so a cluster is not busy from the first hour.

    Declared times are limits: the user's habitual factor times the mean of the burst, rounded
    up to a usual walltime. A job that would have exceeded it got the next limit that it fits,
    so no job runs longer than declared.

    Args:
        preset: a name in `PRESETS`.
        days: length, above 0; time 0 is a Monday at midnight.
        load: mean GPUs demanded / (nodes x gpus_per_node), above 0.
        nodes, gpus_per_node: the cluster; sizes that it can't hold become the largest that it can.
        seed: 0 or more; the same arguments give the same trace, byte for byte.

    Raises:
        InputError: an unknown preset, or a number out of range.

    >>> trace = synthesize("philly-like", days=7, load=0.5, nodes=8, seed=1)
    >>> trace.name, trace.synthetic, len(trace) > 100
    ('synthetic-philly-like', True, True)
    """
    if preset not in PRESETS:
        raise InputError(f"unknown preset '{preset}'", mend=nearest(preset, PRESETS))
    nodes, gpus_per_node = whole(nodes, "nodes"), whole(gpus_per_node, "gpus_per_node")
    limits = (
        ("nodes", nodes, MOST_GPUS),
        ("gpus_per_node", gpus_per_node, MOST_GPUS),
        ("days", days, MOST_DAYS),
        # Behind what it is worked out from.
        ("load", load, MOST_GPUS / (nodes * gpus_per_node or 1)),
    )
    for what, value, most in limits:
        if not 0 < value <= most:
            raise InputError(f"{what} is {value:g}", mend=f"give a number above 0, at most {most:g}")
    seed = whole(seed, "seed", low=0)
    return synthesize_from(PRESETS[preset], days, load, nodes * gpus_per_node, seed)


def synthesize_from(preset: Preset, days: float, load: float, gpus: int, seed: int) -> Trace:
    """As `synthesize`, from any preset, for a cluster of `gpus` GPUs."""
    make = _Maker(preset, seed, days * DAY_S, load * gpus, gpus)
    wanted = load * gpus * days * DAY_S
    drawn = _meet_demand(make, wanted)
    trace = _to_trace(make, drawn)
    if abs(drawn.gpu_seconds / wanted - 1) > 0.05:
        reached = drawn.gpu_seconds / (gpus * days * DAY_S)
        trace.problems.note(
            "load_missed", message=f"the load is {reached:.3g}, not {load:g}: too few jobs to meet it closely"
        )
    return trace


class _Maker:
    """Makes all jobs, given the number of bursts and the exponent of their sizes."""

    def __init__(self, preset: Preset, seed: int, span_s: float, demand_gpus: float, gpus: int) -> None:
        self.preset = preset
        self.streams = Streams(seed)
        self.span_s = span_s
        self.users = users_of(preset.people, demand_gpus, self.streams("users"))
        self.curve = Durations(preset.durations)
        sizes = np.array([size for size, _ in preset.sizes])
        self.sizes = np.minimum(sizes, sizes[sizes <= gpus].max(initial=1))
        shares = np.cumsum([share for _, share in preset.sizes])
        self.shares = shares / shares[-1]

    def tail(self, count: int) -> float:
        return solve_tail(self.preset.arrivals, self.streams, count, self.users.activity, self.span_s)

    def __call__(self, count: int, tail: float) -> Drawn:
        streams = self.streams
        bursts = make_bursts(self.preset.arrivals, streams, count, self.users.activity, self.span_s, tail)
        gpus = self._gpus(bursts)
        score = self._scores("length", self.users.length, bursts)
        each = np.repeat(score, bursts.jobs) + 0.3 * streams("job length").standard_normal(len(gpus))
        each += self.preset.size_effect * np.log2(np.minimum(gpus, self.preset.size_effect_up_to))
        rank = even_quantiles(each, streams("duration"))
        return Drawn(bursts, gpus, np.maximum(1.0, np.round(self.curve(rank))), rank)

    def _gpus(self, bursts: Bursts) -> Ints:
        score = self._scores("size", self.users.size, bursts)
        score -= self.preset.large_alone * np.log(bursts.jobs)
        total = int(bursts.jobs.sum())
        each = np.repeat(score, bursts.jobs) + 0.05 * self.streams("job size").standard_normal(total)
        place = np.searchsorted(self.shares, (places(each) + 0.5) / total)
        return np.asarray(self.sizes[place])

    def _scores(self, part: str, habit: Floats, bursts: Bursts) -> Floats:
        """One standard score for each burst, made of its user's habit, its session and itself."""
        session = self.streams(f"session {part}").standard_normal(int(bursts.session[-1]) + 1)
        burst = self.streams(f"burst {part}").standard_normal(len(bursts.jobs))
        return 0.5 * habit[bursts.user] + 0.6 * session[bursts.session] + 0.5 * burst


def _meet_demand(make: _Maker, wanted: float) -> Drawn:
    """As many bursts as ask for `wanted` GPU-seconds.

    Proportional to their number but for the noise of a few large jobs: so numbers around the
    estimate from all tries are tried, until one comes close; else the closest is taken.
    """
    pilot = make(500, 1.0)
    count = 500 * wanted / pilot.gpu_seconds
    if count * mean_burst(make.preset.arrivals) > MOST_JOBS:
        raise InputError(f"that makes more than {MOST_JOBS:,} jobs", mend="fewer days, nodes or load")
    tail = make.tail(max(1, round(count)))
    best, error = pilot, np.inf
    tried: dict[int, float] = {}
    while error > 0.005 and len(tried) < 60:
        number = _untried(count, tried)
        drawn = make(number, tail)
        tried[number] = drawn.gpu_seconds
        if abs(drawn.gpu_seconds / wanted - 1) < error:
            best, error = drawn, abs(drawn.gpu_seconds / wanted - 1)
        count = wanted * sum(tried) / sum(tried.values())
    return best


def _untried(count: float, tried: Container[int]) -> int:
    """The whole number nearest to `count` that was not tried, at least 1; coarser where it is large."""
    step = max(1, round(count / 500))
    near = max(1, round(count))
    distances = (sign * distance for distance in count_from(0, step) for sign in (1, -1))
    return next(near + away for away in distances if near + away >= 1 and near + away not in tried)


def _declared(bursts: Bursts, users: Users, duration_s: Floats) -> Floats:
    """The time declared for each job, seconds: the same over a burst, but for its longest jobs."""
    mean_s = np.add.reduceat(duration_s, bursts.first) / bursts.jobs
    wanted = np.maximum(np.repeat(mean_s * users.factor[bursts.user], bursts.jobs), duration_s)
    ladder = np.array(WALLTIMES_S)
    usual = ladder[np.minimum(np.searchsorted(ladder, wanted), len(ladder) - 1)]
    return np.where(wanted <= ladder[-1], usual, np.ceil(wanted / ladder[-1]) * ladder[-1])


def _statuses(statuses: Statuses, rank: Floats, streams: Streams) -> Ints:
    """Index into `STATUSES` for each job."""
    draw = streams("status").random((len(rank), 2))
    skew = statuses.cancelled_skew
    cancelled = draw[:, 0] < statuses.cancelled * (skew + 1) * rank**skew
    failed = draw[:, 1] < statuses.failed / (1 - statuses.cancelled)
    return np.where(cancelled, 2, np.where(failed, 1, 0))


def _to_trace(make: _Maker, drawn: Drawn) -> Trace:
    bursts, users = drawn.bursts, make.users
    # What would be submitted after the end is submitted at the start instead: the days form a circle.
    submit_s = np.floor(bursts.submit % make.span_s).astype(np.int64)
    order = np.argsort(submit_s, kind="stable")
    user = np.repeat(bursts.user, bursts.jobs)[order].tolist()
    declared_s = _declared(bursts, users, drawn.duration_s)[order].tolist()
    duration_s = drawn.duration_s[order].tolist()
    status = _statuses(make.preset.statuses, drawn.rank, make.streams)[order].tolist()
    gpus = drawn.gpus[order].tolist()
    requests = {size: Request(size * GPU) for size in sorted(set(gpus))}
    tenants = [f"synthetic-tenant-{tenant + 1:02d}" for tenant in users.tenant.tolist()]
    names = [f"synthetic-user-{index + 1:03d}" for index in range(len(tenants))]
    jobs = [
        Job(
            id=f"synthetic-{index}",
            sequence=index,
            submit=submit * SECOND,
            request=requests[gpus[index]],
            tenant=tenants[user[index]],
            user=names[user[index]],
            declared=int(declared_s[index]) * SECOND,
        )
        for index, submit in enumerate(submit_s[order].tolist())
    ]
    truths = [Truth(int(duration_s[i]) * SECOND, STATUSES[status[i]]) for i in range(len(jobs))]
    return Trace(jobs, truths, name=f"synthetic-{make.preset.name}", format="synthetic", synthetic=True)
