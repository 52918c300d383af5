"""What a trace looks like in numbers: sizes, durations, bursts, tenants, declared times."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from trainmaster.model.job import Job
from trainmaster.model.units import GPU, HOUR, SECOND, to_gpus, to_ns
from trainmaster.traces.trace import Trace

BURST_GAP_S: Final = 600.0
"""Consecutive submissions of one user that are less apart belong to the same burst."""

_CLASSES: Final = (("1", GPU), ("2-4", 4 * GPU), ("5-8", 8 * GPU), (">8", None))
"""Label and largest milli-GPUs of each size class; fractions of a GPU count as 1."""

_RANGES: Final = (
    ("below 1 min", 60),
    ("1-10 min", 600),
    ("10-60 min", 3_600),
    ("1-6 h", 21_600),
    ("6-24 h", 86_400),
    ("1-7 days", 604_800),
    ("7 days or more", None),
)
"""Label and end (not included) of each range of durations, seconds."""


@dataclass(frozen=True, slots=True)
class DurationStatistics:
    """Run times of some jobs, seconds. A quantile is sorted[int(q n)]; None where there is no job.

    Args:
        jobs: number of jobs whose duration is known.
    """

    jobs: int
    mean_s: float | None = None
    p10_s: float | None = None
    median_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs that ask for a number of GPUs in a range.

    Args:
        gpus: the range, as text.
        jobs, share: number and share of all jobs.
        gpu_hours_share: share of all GPU-hours; None where no duration is known.
    """

    gpus: str
    jobs: int
    share: float
    gpu_hours_share: float | None
    duration: DurationStatistics


@dataclass(frozen=True, slots=True)
class DurationRange:
    """Jobs whose run time lies in a range; the share is of the jobs with a known one."""

    label: str
    jobs: int
    share: float


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a trace belongs to one tenant or ended with one status, as `SizeClass` counts it."""

    name: str
    jobs: int
    share: float
    gpu_hours_share: float | None


@dataclass(frozen=True, slots=True)
class Bursts:
    """Runs of at least two consecutive submissions of one user, less than 600 s apart.

    Args:
        by: "user"; "tenant" where no user is known; "trace" where neither is.
        share: share of the jobs that are in one.
        mean: mean number of jobs in one; None without any.
        largest: most jobs in one.
    """

    by: str
    share: float
    mean: float | None
    largest: int


@dataclass(frozen=True, slots=True)
class Declared:
    """How the users' own estimates compare, over jobs with both times.

    Args:
        share: share of all jobs that declare a time.
        median_ratio: median of declared / real (above 1: too long).
        mean_accuracy: mean of real / declared.
        exceeded: share of the jobs that ran longer than declared.
    """

    share: float
    median_ratio: float | None
    mean_accuracy: float | None
    exceeded: float | None


@dataclass(frozen=True, slots=True)
class RecordedWaits:
    """How long jobs waited on the cluster that wrote the log.

    Args:
        jobs, share: number and share of all jobs whose wait is recorded.
        mean_s, median_s: over these; the median is sorted[int(0.5 n)].
    """

    jobs: int
    share: float
    mean_s: float
    median_s: float


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """What `describe` finds; shares are fractions of 1, None means not applicable.

    Args:
        dropped, noted: rows at fault and oddities, by reason.
        clock, start_s, start_unix_s, zone: what its seconds mean; see `Trace.clock`.
        span_s: seconds from the first to the last submission.
        gpu_hours: of the jobs whose duration is known.
        mean_demand_gpus: GPU-seconds of these / span.
        tenants, users: how many are named.
        sizes: one entry for each size class (1, 2-4, 5-8, more GPUs).
        mean_gpus, max_gpus: GPUs of a job.
        duration: over all jobs.
        duration_ranges: how many ran below a minute, 1 to 10 minutes, … 7 days or more.
        jobs_per_hour: submissions in each hour from the first submission's on.
        hourly_mean, hourly_dispersion: mean and variance/mean of `jobs_per_hour`.
        tenant_shares, statuses: largest first.
        deadline_share: share of the jobs with a deadline.
        recorded_wait: None where the log records no wait.
    """

    name: str
    path: str
    format: str
    synthetic: bool
    jobs: int
    dropped: dict[str, int]
    noted: dict[str, int]
    clock: str
    start_s: float
    start_unix_s: float | None
    zone: str | None
    span_s: float
    gpu_hours: float | None
    mean_demand_gpus: float | None
    tenants: int
    users: int
    sizes: tuple[SizeClass, ...]
    mean_gpus: float | None
    max_gpus: float | None
    duration: DurationStatistics
    duration_ranges: tuple[DurationRange, ...]
    jobs_per_hour: tuple[int, ...]
    hourly_mean: float | None
    hourly_dispersion: float | None
    bursts: Bursts
    tenant_shares: tuple[Share, ...]
    statuses: tuple[Share, ...]
    declared: Declared
    deadline_share: float
    recorded_wait: RecordedWaits | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: everything but the hourly series."""
        document = asdict(self)
        del document["jobs_per_hour"]
        return document


def describe(trace: Trace) -> TraceStatistics:
    """Statistics of a trace.

    >>> from trainmaster.traces.synth import synthesize
    >>> statistics = describe(synthesize("philly-like", days=7, load=0.9, nodes=32))
    >>> [round(size.share, 2) for size in statistics.sizes], statistics.synthetic
    ([0.93, 0.04, 0.02, 0.0], True)
    """
    jobs = trace.jobs
    work = [
        job.request.gpus * truth.duration if truth.duration else 0
        for job, truth in zip(jobs, trace.truths, strict=True)
    ]
    durations = [truth.duration for truth in trace.truths]
    gpu_hours = trace.gpu_hours if any(durations) else None
    hourly = _jobs_per_hour(jobs)
    mean_hourly = len(jobs) / len(hourly) if hourly else None
    shares = _Shares(len(jobs), work)
    return TraceStatistics(
        name=trace.name,
        path=trace.path,
        format=trace.format,
        synthetic=trace.synthetic,
        jobs=len(jobs),
        dropped=trace.dropped,
        noted=dict(sorted(trace.problems.noted.items())),
        **trace.clock,
        span_s=trace.span_s,
        gpu_hours=gpu_hours,
        mean_demand_gpus=gpu_hours * 3600 / trace.span_s if gpu_hours and trace.span_s else None,
        tenants=len({job.tenant for job in jobs} - {""}),
        users=len({job.user for job in jobs} - {""}),
        sizes=_sizes(jobs, durations, work),
        mean_gpus=sum(job.request.gpus for job in jobs) / GPU / len(jobs) if jobs else None,
        max_gpus=max((to_gpus(job.request.gpus) for job in jobs), default=None),
        duration=_duration_statistics(durations),
        duration_ranges=_duration_ranges(durations),
        jobs_per_hour=hourly,
        hourly_mean=mean_hourly,
        hourly_dispersion=(
            sum((count - mean_hourly) ** 2 for count in hourly) / len(hourly) / mean_hourly
            if mean_hourly
            else None
        ),
        bursts=_bursts(jobs),
        tenant_shares=shares.of([job.tenant for job in jobs]),
        statuses=shares.of([truth.status for truth in trace.truths]),
        declared=_declared(trace),
        deadline_share=sum(1 for job in jobs if job.deadlines) / len(jobs) if jobs else 0.0,
        recorded_wait=_recorded_waits([truth.queue for truth in trace.truths]),
    )


def _duration_statistics(durations: Iterable[int | None]) -> DurationStatistics:
    known = sorted(duration for duration in durations if duration is not None)
    if not known:
        return DurationStatistics(0)

    def at(share: float) -> float:
        return known[int(share * len(known))] / SECOND

    return DurationStatistics(
        jobs=len(known),
        mean_s=sum(known) / len(known) / SECOND,
        p10_s=at(0.1),
        median_s=at(0.5),
        p90_s=at(0.9),
        p99_s=at(0.99),
        max_s=known[-1] / SECOND,
    )


def _duration_ranges(durations: Iterable[int | None]) -> tuple[DurationRange, ...]:
    ends = [end * SECOND for _, end in _RANGES if end is not None]
    counts = Counter(bisect_right(ends, duration) for duration in durations if duration is not None)
    known = sum(counts.values())
    return tuple(
        DurationRange(label, counts[index], counts[index] / known if known else 0.0)
        for index, (label, _) in enumerate(_RANGES)
    )


def _sizes(
    jobs: Sequence[Job], durations: Sequence[int | None], work: Sequence[int]
) -> tuple[SizeClass, ...]:
    found = []
    total = sum(work)
    above = 0
    for label, most in _CLASSES:
        inside = [
            index
            for index, job in enumerate(jobs)
            if above < job.request.gpus and (most is None or job.request.gpus <= most)
        ]
        above = most or above
        found.append(
            SizeClass(
                gpus=label,
                jobs=len(inside),
                share=len(inside) / len(jobs) if jobs else 0.0,
                gpu_hours_share=sum(work[index] for index in inside) / total if total else None,
                duration=_duration_statistics(durations[index] for index in inside),
            )
        )
    return tuple(found)


def _jobs_per_hour(jobs: Sequence[Job]) -> tuple[int, ...]:
    """Counts by whole hours of the trace's clock, from the first submission's hour to the last's."""
    if not jobs:
        return ()
    counts = Counter(job.submit // HOUR for job in jobs)
    return tuple(counts[hour] for hour in range(jobs[0].submit // HOUR, jobs[-1].submit // HOUR + 1))


def _bursts(jobs: Sequence[Job]) -> Bursts:
    by, owner = _owner(jobs)
    gap = to_ns(BURST_GAP_S)
    last: dict[str, int] = {}
    current: Counter[str] = Counter()
    sizes: list[int] = []
    for job in jobs:
        name = owner(job)
        if job.submit - last.get(name, job.submit) >= gap:
            sizes.append(current.pop(name))
        last[name] = job.submit
        current[name] += 1
    sizes = [size for size in (*sizes, *current.values()) if size >= 2]
    return Bursts(
        by=by,
        share=sum(sizes) / len(jobs) if jobs else 0.0,
        mean=sum(sizes) / len(sizes) if sizes else None,
        largest=max(sizes, default=0),
    )


def _owner(jobs: Sequence[Job]) -> tuple[str, Callable[[Job], str]]:
    if any(job.user for job in jobs):
        return "user", lambda job: job.user
    if any(job.tenant for job in jobs):
        return "tenant", lambda job: job.tenant
    return "trace", lambda job: ""


class _Shares:
    """Shares of the jobs and of the GPU-hours by a name that every job has."""

    def __init__(self, jobs: int, work: Sequence[int]) -> None:
        self.jobs = jobs
        self.work = work

    def of(self, names: Sequence[str]) -> tuple[Share, ...]:
        counts = Counter(names)
        if set(counts) <= {""}:
            return ()
        work: Counter[str] = Counter()
        for name, amount in zip(names, self.work, strict=True):
            work[name] += amount
        total = sum(self.work)
        return tuple(
            Share(name, count, count / self.jobs, work[name] / total if total else None)
            for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )


def _declared(trace: Trace) -> Declared:
    declaring = sum(1 for job in trace.jobs if job.declared is not None)
    pairs = [
        (job.declared, truth.duration)
        for job, truth in zip(trace.jobs, trace.truths, strict=True)
        if job.declared and truth.duration
    ]
    if not pairs:
        return Declared(declaring / len(trace) if len(trace) else 0.0, None, None, None)
    ratios = sorted(declared / real for declared, real in pairs)
    return Declared(
        share=declaring / len(trace),
        median_ratio=ratios[len(ratios) // 2],
        mean_accuracy=sum(real / declared for declared, real in pairs) / len(pairs),
        exceeded=sum(1 for declared, real in pairs if real > declared) / len(pairs),
    )


def _recorded_waits(waits: Sequence[int | None]) -> RecordedWaits | None:
    known = sorted(wait for wait in waits if wait is not None)
    if not known:
        return None
    return RecordedWaits(
        jobs=len(known),
        share=len(known) / len(waits),
        mean_s=sum(known) / len(known) / SECOND,
        median_s=known[len(known) // 2] / SECOND,
    )
