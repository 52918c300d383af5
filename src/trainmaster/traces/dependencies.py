"""Dependencies between jobs that could never be met are found while reading, not while waiting."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from trainmaster.model.job import Job
from trainmaster.traces.problems import Problems
from trainmaster.traces.trace import Truth


def settle(jobs: list[Job], truths: list[Truth], problems: Problems) -> tuple[list[Job], list[Truth]]:
    """Jobs of a file without dependencies that can't be met; `sequence` must still be the row.

    A dependency on a job that isn't in the trace (dropped, or never there) is taken as
    met and noted as ``dependency_absent``. Jobs that wait for each other in a circle,
    and all that wait for them, are dropped as ``dependency_cycle``.
    """
    if not any(job.depends_on for job in jobs):
        return jobs, truths
    jobs = without_absent(jobs, problems)
    startable = _startable(jobs)
    kept = []
    for job, truth in zip(jobs, truths, strict=True):
        if job.id in startable:
            kept.append((job, truth))
        else:
            message = f"job {job.id!r} waits for itself through {', '.join(job.depends_on)}"
            problems.drop("dependency_cycle", job.sequence, message=message, column="depends_on")
    return [job for job, _ in kept], [truth for _, truth in kept]


def without_absent(jobs: list[Job], problems: Problems | None = None) -> list[Job]:
    """The jobs, their dependencies on jobs that are not among them taken as met."""
    present = {job.id for job in jobs}
    settled = []
    for job in jobs:
        known = tuple(name for name in job.depends_on if name in present)
        if known != job.depends_on:
            if problems is not None:
                absent = next(name for name in job.depends_on if name not in present)
                message = f"job {job.id!r} depends on {absent!r}, which is not in the trace"
                problems.note("dependency_absent", message=message, column="depends_on")
            job = replace(job, depends_on=known)
        settled.append(job)
    return settled


def _startable(jobs: list[Job]) -> set[str]:
    """Ids of the jobs that can start once those before them have finished (Kahn 1962)."""
    waiting_for = {job.id: len(set(job.depends_on)) for job in jobs}
    dependants: dict[str, list[str]] = {}
    for job in jobs:
        for name in set(job.depends_on):
            dependants.setdefault(name, []).append(job.id)
    ready = deque(name for name, count in waiting_for.items() if count == 0)
    startable: set[str] = set()
    while ready:
        name = ready.popleft()
        startable.add(name)
        for dependant in dependants.get(name, ()):
            waiting_for[dependant] -= 1
            if waiting_for[dependant] == 0:
                ready.append(dependant)
    return startable
