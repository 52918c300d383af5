"""A trace in memory: jobs as submitted, and apart from them what really happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from trainmaster.model.calendar import Calendar, calendar_of
from trainmaster.model.job import Job
from trainmaster.model.units import GPU, HOUR, SECOND
from trainmaster.traces.problems import Problems


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened to a job. Only the simulator may hold one.

    Args:
        duration: run time on the resources asked for, nanoseconds; None when the trace
            does not say (the job's workload and a speed profile give it).
        status: how it ended: "completed", "failed", "cancelled", "timeout", …; "" = unknown.
        queue: the wait that was recorded, nanoseconds; None = unknown.
    """

    duration: int | None
    status: str = ""
    queue: int | None = None


@dataclass(repr=False)
class Trace:
    """Jobs in order of submission, with the truth about each.

    Args:
        jobs: sorted by submit time, then by row; ``jobs[i].sequence == i``.
        truths: one for each job, in the same order.
        name: short name, for titles.
        path: where it came from.
        format: name of the reader.
        problems: what was dropped or noted while reading.
        synthetic: True for generated jobs, which every display says.
        calendar: the dates of its clock; None when they are not known. Where the first job is
            submitted after 1e9 s, the clock is taken to count from 1970 (UTC).

    >>> from trainmaster.model.job import Request
    >>> trace = Trace([Job("a", 0, 0, Request(2000))], [Truth(1800 * SECOND)], name="tiny")
    >>> len(trace), trace.gpu_hours, trace.tenants
    (1, 1.0, ('',))
    >>> trace
    Trace('tiny', 1 job)
    """

    jobs: list[Job]
    truths: list[Truth]
    name: str = ""
    path: str = ""
    format: str = ""
    problems: Problems = field(default_factory=Problems)
    synthetic: bool = False
    calendar: Calendar | None = None

    def __post_init__(self) -> None:
        if self.calendar is None and self.jobs:
            self.calendar = calendar_of(self.jobs[0].submit)

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{len(self):,} job{'' if len(self) == 1 else 's'}"]
        days = self.span_s / 86_400
        if days:
            parts.append(f"{days:,.0f} days" if days >= 2 else f"{days * 24:.3g} hours")
        return f"Trace({', '.join((*parts, 'synthetic') if self.synthetic else parts)})"

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def origin(self) -> str:
        """The date that is time 0, as text; "" when it is not known, or 1970."""
        return self.calendar.text(0) if self.calendar is not None and self.calendar.zero else ""

    @property
    def clock(self) -> dict[str, Any]:
        """What the seconds of its files mean, for records.

        ``clock`` is "unix" (seconds since 1970) or "relative"; ``start_s`` the first submission
        on that clock, ``start_unix_s`` the same instant in seconds since 1970, None when not
        known; ``zone`` of the latter "UTC", or "local" when the log names none.
        """
        known = self.calendar
        start = self.jobs[0].submit if self.jobs else 0
        return {
            "clock": "unix" if known is not None and not known.zero else "relative",
            "start_s": _seconds(start),
            "start_unix_s": None if known is None else _seconds(known.zero + start),
            "zone": None if known is None else known.zone or "local",
        }

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last submission."""
        return (self.jobs[-1].submit - self.jobs[0].submit) / SECOND if self.jobs else 0.0

    @property
    def gpu_hours(self) -> float:
        """GPU-hours that the jobs with a known duration need."""
        total = sum(
            job.request.gpus * truth.duration
            for job, truth in zip(self.jobs, self.truths, strict=True)
            if truth.duration is not None
        )
        return total / (GPU * HOUR)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants, sorted."""
        return tuple(sorted({job.tenant for job in self.jobs}))

    @property
    def dropped(self) -> dict[str, int]:
        """Rows dropped while reading, by reason, sorted by reason."""
        return dict(sorted(self.problems.dropped.items()))


def _seconds(ns: int) -> int | float:
    whole, rest = divmod(ns, SECOND)
    return ns / SECOND if rest else whole


def renumbered(jobs: Iterable[Job]) -> list[Job]:
    """The jobs with `sequence` 0, 1, 2, …; jobs already numbered right are shared, not copied."""
    return [job if job.sequence == index else _with_sequence(job, index) for index, job in enumerate(jobs)]


def _with_sequence(job: Job, sequence: int) -> Job:
    # Spelled out because dataclasses.replace costs three times as much on long traces.
    return Job(
        job.id,
        sequence,
        job.submit,
        job.request,
        job.tenant,
        job.user,
        job.priority,
        job.declared,
        job.workload,
        job.deadlines,
        job.depends_on,
        job.job_class,
    )
