"""Parts of a trace: a span of time, the first jobs, a thinner one with the same pattern."""

from __future__ import annotations

import random
from collections.abc import Iterator

from trainmaster.model.errors import InputError
from trainmaster.model.units import to_ns
from trainmaster.traces.dependencies import without_absent
from trainmaster.traces.schema import LIMIT_S
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
    check_span(start_s, end_s)
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


def check_span(start_s: float | None, end_s: float | None) -> None:
    """Raise `InputError` unless [start_s, end_s), seconds, is a span of time; None = open on that side."""
    for option, value in (("--from", start_s), ("--to", end_s)):
        if value is not None and not abs(value) <= LIMIT_S:
            raise InputError(f"{option} is {value}", mend=f"give seconds up to {LIMIT_S:g}")
    if start_s is not None and end_s is not None and start_s >= end_s:
        raise InputError(f"the span from {start_s} to {end_s} is empty", mend="--from must be below --to")


def sample(trace: Trace, fraction: float, seed: int = 0) -> Trace:
    """A thinner trace with the same arrival pattern.

    Every job is kept with the probability `fraction`, but not independently: among the
    jobs that ask for the same number of GPUs, in order of time, one of about 1/fraction
    neighbours stays (ordered pivotal sampling, Deville and Tillé 1998). So each hour, each
    burst and each size keeps its share almost exactly, and the load curve of a cluster
    shrunk by `fraction` has the same shape. Bursts become shorter with the rest: their
    size relative to the mean rate stays, not the number of jobs in one.

    Args:
        trace: the trace.
        fraction: share of the jobs to keep, 0 < fraction <= 1.
        seed: which of the neighbours stay.

    Raises:
        InputError: the fraction is not in (0, 1], or the seed is negative.
    """
    if not 0 < fraction <= 1:
        raise InputError(f"the fraction to sample is {fraction}", mend="more than 0 and at most 1")
    if seed < 0:
        raise InputError(f"seed is {seed}", mend="give a whole number, 0 or more")
    generator = random.Random(seed)
    by_size: dict[int, list[int]] = {}
    for index, job in enumerate(trace.jobs):
        by_size.setdefault(job.request.gpus, []).append(index)
    kept = [
        index for _, indexes in sorted(by_size.items()) for index in _pivotal(indexes, fraction, generator)
    ]
    return part(trace, sorted(kept))


def _pivotal(items: list[int], fraction: float, generator: random.Random) -> Iterator[int]:
    """Items kept with probability `fraction` each: neighbours settle between them who stays."""
    if fraction == 1:
        yield from items
        return
    undecided, chance = items[0], fraction
    for item in items[1:]:
        total = chance + fraction
        if total < 1:
            undecided = undecided if generator.random() * total < chance else item
            chance = total
        else:
            stays, waits = (
                (undecided, item) if generator.random() * (2 - total) < 1 - fraction else (item, undecided)
            )
            yield stays
            undecided, chance = waits, total - 1
    if generator.random() < chance:
        yield undecided


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
        trace.calendar,
    )
