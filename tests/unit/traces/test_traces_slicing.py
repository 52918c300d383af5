"""Slices and samples: which jobs stay, and that the pattern of arrivals stays with them."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.model.job import Deadline, Job, Request
from trainmaster.model.units import HOUR, SECOND
from trainmaster.traces import Trace, Truth, sample, slice_trace
from trainmaster.traces.slicing import _pivotal


def trace_of(*submits: float) -> Trace:
    jobs = [Job(f"j{index}", index, round(at * SECOND), Request(1000)) for index, at in enumerate(submits)]
    return Trace(
        jobs, [Truth(SECOND * (index + 1)) for index in range(len(jobs))], name="made", synthetic=True
    )


def ids(trace: Trace) -> list[str]:
    return [job.id for job in trace.jobs]


def test_the_span_is_half_open() -> None:
    trace = trace_of(0, 10, 10, 20, 30)
    assert ids(slice_trace(trace, start_s=10, end_s=20)) == ["j1", "j2"]
    assert ids(slice_trace(trace, start_s=10.5)) == ["j3", "j4"]
    assert ids(slice_trace(trace, end_s=10)) == ["j0"]
    assert ids(slice_trace(trace)) == ids(trace)


def test_the_limit_counts_within_the_span() -> None:
    trace = trace_of(0, 10, 10, 20, 30)
    assert ids(slice_trace(trace, limit=2)) == ["j0", "j1"]
    assert ids(slice_trace(trace, start_s=10, limit=3)) == ["j1", "j2", "j3"]
    assert ids(slice_trace(trace, limit=99)) == ids(trace)


def test_a_slice_is_renumbered_keeps_its_clock_and_leaves_the_trace_alone() -> None:
    trace = trace_of(0, 10, 20)
    part = slice_trace(trace, start_s=10)
    assert [(job.sequence, job.submit) for job in part.jobs] == [(0, 10 * SECOND), (1, 20 * SECOND)]
    assert part.truths == trace.truths[1:]
    assert (part.name, part.synthetic) == ("made", True)
    assert [job.sequence for job in trace.jobs] == [0, 1, 2]


def test_every_field_survives_the_renumbering() -> None:
    job = Job("b", 1, 5, Request(1000), "t", "u", 3, 4, None, (Deadline(9),), ("a",), "c")
    trace = Trace([Job("a", 0, 0, Request(1000)), job], [Truth(1), Truth(1)])
    (kept,) = slice_trace(trace, start_s=1e-9).jobs
    assert (kept.tenant, kept.user, kept.priority, kept.declared, kept.deadlines, kept.job_class) == (
        "t",
        "u",
        3,
        4,
        (Deadline(9),),
        "c",
    )
    assert kept.depends_on == (), "a dependency outside the slice counts as met"


@pytest.mark.parametrize("options", [{"start_s": 5, "end_s": 5}, {"start_s": 6, "end_s": 5}, {"limit": 0}])
def test_empty_spans_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        slice_trace(trace_of(0, 1), **options)  # type: ignore[arg-type]


def week(seed: int = 7) -> Trace:
    """A week with day and night, bursts, four sizes and a few tenants."""
    generator = random.Random(seed)
    arrivals = []
    for hour in range(7 * 24):
        rate = 40 if 9 <= hour % 24 < 18 else 8
        for _ in range(generator.randrange(rate)):
            start = hour * 3600 + generator.random() * 3600
            size = generator.choices((1, 2, 8, 32), (80, 10, 8, 2))[0]
            burst = 1 if generator.random() < 0.6 else generator.randrange(2, 20)
            arrivals.extend((start + place * 30, size, generator.randrange(5)) for place in range(burst))
    jobs = [
        Job(f"j{index}", index, round(at * SECOND), Request(size * 1000), f"t{tenant}")
        for index, (at, size, tenant) in enumerate(sorted(arrivals))
    ]
    return Trace(jobs, [Truth(HOUR)] * len(jobs))


def hourly(trace: Trace, hours: int = 7 * 24 + 1) -> list[int]:
    counts = Counter(job.submit // HOUR for job in trace.jobs)
    return [counts[hour] for hour in range(hours)]


def correlation(xs: list[int], ys: list[int]) -> float:
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    spread = sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys)
    return float(covariance / spread**0.5)


def relative_spread(counts: list[int]) -> float:
    mean = sum(counts) / len(counts)
    return (sum((count - mean) ** 2 for count in counts) / len(counts)) ** 0.5 / mean


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sample_keeps_the_pattern(fraction: float, seed: int) -> None:
    trace = week()
    thin = sample(trace, fraction, seed)
    assert len(thin) == pytest.approx(fraction * len(trace), abs=4)
    assert correlation(hourly(thin), hourly(trace)) > 0.97
    assert relative_spread(hourly(thin)) == pytest.approx(relative_spread(hourly(trace)), rel=0.1)
    for size, count in Counter(job.request.gpus for job in trace.jobs).items():
        kept = sum(job.request.gpus == size for job in thin.jobs)
        assert abs(kept - fraction * count) <= 1, "each size keeps its share"
    for tenant in trace.tenants:
        share = sum(job.tenant == tenant for job in trace.jobs) / len(trace)
        assert sum(job.tenant == tenant for job in thin.jobs) / len(thin) == pytest.approx(share, abs=0.04)


def test_a_sample_is_better_than_tossing_a_coin_for_every_job() -> None:
    trace = week()
    generator = random.Random(0)
    tossed = Trace([job for job in trace.jobs if generator.random() < 0.1], [])
    assert (
        correlation(hourly(sample(trace, 0.1, 0)), hourly(trace))
        > correlation(hourly(tossed), hourly(trace)) + 0.01
    )


def test_a_sample_depends_on_its_seed_alone() -> None:
    trace = week()
    assert ids(sample(trace, 0.3, 5)) == ids(sample(trace, 0.3, 5))
    assert ids(sample(trace, 0.3, 5)) != ids(sample(trace, 0.3, 6))
    assert ids(sample(trace, 1)) == ids(trace)
    assert len(sample(trace_of(), 0.5)) == 0


@pytest.mark.parametrize("fraction", [0, -0.5, 1.01, float("nan")])
def test_fractions_outside_are_refused(fraction: float) -> None:
    with pytest.raises(InputError, match="more than 0 and at most 1"):
        sample(trace_of(0), fraction)


@given(st.integers(1, 200), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_pivotal_sampling_keeps_the_expected_number(count: int, fraction: float, seed: int) -> None:
    kept = list(_pivotal(list(range(count)), fraction, random.Random(seed)))
    assert abs(len(kept) - fraction * count) < 1 + 1e-9
    assert len(set(kept)) == len(kept)


def test_pivotal_sampling_keeps_everyone_with_the_same_probability() -> None:
    generator = random.Random(3)
    rounds, fraction = 4000, 0.3
    counts = Counter(item for _ in range(rounds) for item in _pivotal(list(range(11)), fraction, generator))
    for item in range(11):
        assert counts[item] / rounds == pytest.approx(fraction, abs=0.035)
