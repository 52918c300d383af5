"""The figures that a synthetic trace is made to meet, one frozen dataclass a cluster.

A preset holds marginal figures (shares, quantiles, means), never rows of a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DurationCurve:
    """Run times by their share: three log-logistic pieces, then a Pareto tail cut at `longest_s`.

    The 90 % point is solved for, so that the mean comes out; everything else is given.

    Args:
        p10_s, median_s, p99_s: seconds that 10, 50 and 99 % of the jobs do not exceed.
        mean_s: mean of all, seconds.
        tail_index: exponent of the Pareto tail above `p99_s` (smaller is heavier).
        longest_s: no job runs longer; equal to `p99_s` where the source cuts there.
    """

    p10_s: float
    median_s: float
    p99_s: float
    mean_s: float
    tail_index: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When jobs come: single users submit bursts, more of them by day than by night.

    Args:
        hourly_dispersion: variance/mean of the jobs per hour. The spread of burst sizes is
            solved for, so that it comes out. The day and week pattern adds a part that
            grows with the rate; where that alone exceeds the figure, it does too.
        burst_share: share of the jobs that are in bursts (two jobs or more).
        burst_mean: mean number of jobs in a burst.
        largest_burst: no burst is larger.
        session_bursts: mean number of bursts (and single jobs) that a user submits in one session.
        pause_s: median pause between the bursts of a session, seconds.
        gap_s: median of the bursts' own mean gap between two jobs, seconds.
        day_amplitude: 0 = flat, 1 = nothing comes at the quietest hour.
        peak_hour: the busiest hour of the day.
        weekend: rate on Saturday and Sunday as a part of the other days'.
    """

    hourly_dispersion: float
    burst_share: float
    burst_mean: float
    largest_burst: int
    session_bursts: float
    pause_s: float
    gap_s: float
    day_amplitude: float
    peak_hour: float
    weekend: float


@dataclass(frozen=True, slots=True)
class People:
    """Who submits.

    Args:
        tenant_shares: share of the bursts of each tenant; sums to 1.
        gpus_per_user: mean GPUs that one user keeps busy; a larger load has more users, each
            as active as before.
        user_skew: Zipf exponent of the users' activity within their tenant.
        declared_factor: median of the users' habits: declared time / mean time of the burst.
    """

    tenant_shares: tuple[float, ...]
    gpus_per_user: float
    user_skew: float
    declared_factor: float


@dataclass(frozen=True, slots=True)
class Statuses:
    """How jobs end.

    Args:
        failed, cancelled: shares of the jobs; the rest completes.
        cancelled_skew: 0 = cancelled jobs are as long as others; k = the share of cancelled
            jobs grows with the k-th power of the job's rank by duration.
    """

    failed: float
    cancelled: float
    cancelled_skew: float


@dataclass(frozen=True, slots=True)
class Preset:
    """What `synthesize` makes; every number that shapes a trace is here.

    Args:
        name: as on the command line.
        source: where the figures come from, and which of them are our own assumption.
        sizes: (GPUs, share of the jobs), GPUs growing; shares sum to 1.
        durations: run times over all sizes.
        size_effect: how much longer larger jobs run, in standard scores a doubling of the GPUs.
        size_effect_up_to: GPUs from which on it grows no more.
        large_alone: how strongly large jobs keep out of large bursts (0 = not at all).
        arrivals, people, statuses: see there.
    """

    name: str
    source: str
    sizes: tuple[tuple[int, float], ...]
    durations: DurationCurve
    size_effect: float
    size_effect_up_to: int
    large_alone: float
    arrivals: Arrivals
    people: People
    statuses: Statuses


DAY_S: Final = 86_400.0

# fmt: off
_PHILLY_TENANTS: Final = (
    0.5, 0.17, 0.11, 0.07, 0.04, 0.03, 0.022, 0.016, 0.012, 0.009, 0.007, 0.005, 0.004, 0.003, 0.002,
)
_HELIOS_SIZES: Final = (
    (1, 0.518), (2, 0.055), (4, 0.075), (8, 0.252),
    (16, 0.047), (24, 0.009), (32, 0.024), (64, 0.011), (128, 0.006), (160, 0.003),
)
_ACME_SIZES: Final = (
    (1, 0.6295), (2, 0.07), (4, 0.06), (8, 0.19), (16, 0.0155), (32, 0.018), (64, 0.01),
    (128, 0.004), (256, 0.002), (512, 0.0007), (1024, 0.0003),
)
# fmt: on

PHILLY_LIKE: Final = Preset(
    name="philly-like",
    source="Philly, Microsoft 2017 (Jeon et al., ATC '19): shares of sizes, median, mean and p99 of the "
    "duration, dispersion, bursts, tenants and statuses of the public log; the rest is assumed",
    sizes=((1, 0.9317), (2, 0.0222), (4, 0.0226), (8, 0.02), (16, 0.0025), (32, 0.0008), (64, 0.0002)),
    durations=DurationCurve(
        p10_s=61, median_s=1_144, p99_s=254_758, mean_s=13_136, tail_index=1.5, longest_s=40 * DAY_S
    ),
    size_effect=0.45,
    size_effect_up_to=8,
    large_alone=0.8,
    arrivals=Arrivals(
        hourly_dispersion=160,
        burst_share=0.87,
        burst_mean=8.0,
        largest_burst=1_000,
        session_bursts=3.0,
        pause_s=2_400,
        gap_s=8,
        day_amplitude=0.35,
        peak_hour=15,
        weekend=0.6,
    ),
    people=People(
        tenant_shares=_PHILLY_TENANTS,
        gpus_per_user=1.25,
        user_skew=0.8,
        declared_factor=1.6,
    ),
    statuses=Statuses(failed=0.305, cancelled=0.09, cancelled_skew=1.0),
)

HELIOS_LIKE: Final = Preset(
    name="helios-like",
    source="Helios, SenseTime 2020, cluster Venus (Hu et al., SC '21): shares of sizes, median and mean of "
    "the duration (cut at 48 h), dispersion, and the statuses of all Helios; the rest is assumed",
    sizes=_HELIOS_SIZES,
    durations=DurationCurve(
        p10_s=16, median_s=204, p99_s=2 * DAY_S, mean_s=9_088, tail_index=1.0, longest_s=2 * DAY_S
    ),
    size_effect=0.03,
    size_effect_up_to=64,
    large_alone=0.3,
    arrivals=Arrivals(
        hourly_dispersion=39,
        burst_share=0.8,
        burst_mean=5.0,
        largest_burst=400,
        session_bursts=3.0,
        pause_s=2_400,
        gap_s=20,
        day_amplitude=0.75,
        peak_hour=14,
        weekend=0.7,
    ),
    people=People(
        tenant_shares=(0.22, 0.16, 0.12, 0.1, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.03, 0.02, 0.01, 0.01),
        gpus_per_user=3.0,
        user_skew=0.8,
        declared_factor=1.6,
    ),
    statuses=Statuses(failed=0.155, cancelled=0.221, cancelled_skew=1.0),
)

ACME_LIKE: Final = Preset(
    name="acme-like",
    source="Acme, Shanghai AI Laboratory 2023, cluster Seren (Hu et al., NSDI '24): mean and largest number "
    "of GPUs, median, mean and longest duration, statuses and their GPU time; the rest is assumed",
    sizes=_ACME_SIZES,
    durations=DurationCurve(
        p10_s=15, median_s=122, p99_s=28_800, mean_s=1_414.335, tail_index=1.3, longest_s=14 * DAY_S
    ),
    size_effect=0.12,
    size_effect_up_to=1_024,
    large_alone=0.5,
    arrivals=Arrivals(
        hourly_dispersion=90,
        burst_share=0.85,
        burst_mean=8.0,
        largest_burst=1_000,
        session_bursts=3.0,
        pause_s=2_400,
        gap_s=8,
        day_amplitude=0.5,
        peak_hour=15,
        weekend=0.7,
    ),
    people=People(
        tenant_shares=(0.3, 0.2, 0.15, 0.1, 0.08, 0.07, 0.05, 0.03, 0.02),
        gpus_per_user=6.0,
        user_skew=0.8,
        declared_factor=1.6,
    ),
    statuses=Statuses(failed=0.429, cancelled=0.075, cancelled_skew=8.0),
)

PRESETS: Final[Mapping[str, Preset]] = {
    preset.name: preset for preset in (PHILLY_LIKE, HELIOS_LIKE, ACME_LIKE)
}
"""The presets by name."""
