"""Parts of a trace: a span of time, the first jobs, a thinner one with the same pattern."""

from __future__ import annotations

from trainmaster.model.errors import InputError
from trainmaster.model.units import to_ns
from trainmaster.traces.dependencies import without_absent
from trainmaster.traces.trace import Trace, renumbered


def slice_trace(
    trace: Trace, *, start_s: float | None = None, end_s: float | None = None, limit: int | None = None
) -> Trace:
    """Jobs submitted in [start_s, end_s), at most `limit` of them.

    Times are seconds on the trace's clock, which stays as it is: a job keeps its submit
    time and its deadlines. Dependencies on jobs outside are taken as met.

    Raises:
        InputError: the span is empty (start_s >= end_s) or the limit is below 1.
    """
    if start_s is not None and end_s is not None and start_s >= end_s:
        raise InputError(f"the span from {start_s} to {end_s} is empty", mend="--from must be below --to")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}", mend="--limit must be at least 1")
    start = None if start_s is None else to_ns(start_s)
    end = None if end_s is None else to_ns(end_s)
    chosen = [
        index
        for index, job in enumerate(trace.jobs)
        if (start is None or job.submit >= start) and (end is None or job.submit < end)
    ]
    return part(trace, chosen[:limit])


def part(trace: Trace, indexes: list[int]) -> Trace:
    """The jobs at `indexes` (growing), renumbered; dependencies on the others are taken as met."""
    jobs = [trace.jobs[index] for index in indexes]
    if any(job.depends_on for job in jobs):
        jobs = without_absent(jobs)
    return Trace(
        renumbered(jobs),
        [trace.truths[index] for index in indexes],
        trace.name,
        trace.path,
        trace.format,
        trace.problems,
        trace.synthetic,
        trace.origin,
    )
