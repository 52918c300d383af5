"""What a synthetic trace is, whatever its figures: valid, labelled, repeatable, plausible."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from math import log
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.model.units import DAY, GPU, SECOND
from trainmaster.traces import Trace, load_trace, write_csv
from trainmaster.traces.synth import PRESETS, synthesize


@pytest.fixture(scope="module")
def week() -> Trace:
    return synthesize("philly-like", days=7, load=0.9, nodes=32, seed=0)


def test_it_is_labelled_synthetic_everywhere(week: Trace, tmp_path: Path) -> None:
    assert week.synthetic
    assert week.name == "synthetic-philly-like"
    for job in week.jobs:
        assert all("synthetic" in name for name in (job.id, job.tenant, job.user))
    write_csv(week, tmp_path / "innocent.csv.gz")
    assert load_trace(tmp_path / "innocent.csv.gz").synthetic


def test_it_survives_the_way_through_a_file(week: Trace, tmp_path: Path) -> None:
    write_csv(week, tmp_path / "week.csv.gz")
    again = load_trace(tmp_path / "week.csv.gz", strict=True)
    assert again.dropped == {}
    assert again.truths == week.truths
    for here, there in zip(week.jobs, again.jobs, strict=True):
        assert (here.id, here.submit, here.request, here.tenant, here.user, here.declared) == (
            there.id,
            there.submit,
            there.request,
            there.tenant,
            there.user,
            there.declared,
        )


def test_jobs_are_in_order_of_submission_within_the_days(week: Trace) -> None:
    assert [job.sequence for job in week.jobs] == list(range(len(week)))
    assert len({job.id for job in week.jobs}) == len(week)
    assert all(one.submit <= next_one.submit for one, next_one in pairwise(week.jobs))
    assert all(0 <= job.submit < 7 * DAY and job.submit % SECOND == 0 for job in week.jobs)


def test_nobody_runs_longer_than_declared_and_users_declare_usual_times(week: Trace) -> None:
    declared = [job.declared for job in week.jobs]
    assert all(
        limit is not None and truth.duration is not None and truth.duration <= limit
        for limit, truth in zip(declared, week.truths, strict=True)
    )
    assert len(set(declared)) < 20
    ratios = sorted(limit / truth.duration for limit, truth in zip(declared, week.truths, strict=True))  # type: ignore[operator]
    assert 2 < ratios[len(ratios) // 2] < 10, "most users ask for a good deal more than they need"


def test_declared_times_do_not_tell_the_order_within_a_burst(week: Trace) -> None:
    limits = defaultdict(set)
    for burst in _bursts(week):
        for index in burst:
            limits[burst[0]].add(week.jobs[index].declared)
    large = [len(limits[burst[0]]) for burst in _bursts(week) if len(burst) >= 8]
    assert sum(large) / len(large) < 4


def test_jobs_of_one_burst_resemble_each_other(week: Trace) -> None:
    """Neighbours in a burst are alike in size and duration; neighbours in time are not."""
    pairs = [pair for burst in _bursts(week) for pair in pairwise(burst)]
    same = sum(week.jobs[a].request.gpus == week.jobs[b].request.gpus for a, b in pairs)
    assert same / len(pairs) > 0.95
    assert _correlation(week, pairs) > 0.7
    of_two_users = [
        pair for pair in pairwise(range(len(week))) if week.jobs[pair[0]].user != week.jobs[pair[1]].user
    ]
    assert _correlation(week, of_two_users) < 0.4


def test_day_and_week_show() -> None:
    trace = synthesize("helios-like", days=70, load=0.9, nodes=64, seed=2)
    hours = [job.submit // (3600 * SECOND) for job in trace.jobs]
    by_day = sum(9 <= hour % 24 < 21 for hour in hours) / len(hours)
    at_weekend = sum(hour // 24 % 7 >= 5 for hour in hours) / len(hours)
    assert by_day > 0.6, "half without a pattern"
    assert at_weekend < 0.26, "2/7 without a pattern"


def test_the_same_arguments_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys; from trainmaster.traces import write_csv;"
        "from trainmaster.traces.synth import synthesize;"
        "write_csv(synthesize('acme-like', days=1, load=0.5, nodes=16, seed=5), sys.argv[1])"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / f"{seed}.csv"], check=True, env=environment)
    first = (tmp_path / "1.csv").read_bytes()
    assert first == (tmp_path / "2.csv").read_bytes()
    assert first.count(b"\n") > 100


def test_another_seed_gives_another_trace(week: Trace) -> None:
    other = synthesize("philly-like", days=7, load=0.9, nodes=32, seed=1)
    assert [job.submit for job in other.jobs[:50]] != [job.submit for job in week.jobs[:50]]
    assert (
        sorted(truth.duration or 0 for truth in other.truths)[-5:]
        != sorted(truth.duration or 0 for truth in week.truths)[-5:]
    ), "the longest jobs differ too"


def test_a_job_fits_the_cluster() -> None:
    trace = synthesize("acme-like", days=30, load=0.9, nodes=4, gpus_per_node=8, seed=0)
    assert max(job.request.gpus for job in trace.jobs) == 32 * GPU
    tiny = synthesize("philly-like", days=3, load=0.9, nodes=1, gpus_per_node=3, seed=0)
    assert {job.request.gpus for job in tiny.jobs} <= {GPU, 2 * GPU}


def test_a_load_that_so_few_jobs_cannot_meet_is_noted() -> None:
    trace = synthesize("philly-like", days=0.01, load=0.1, nodes=1, seed=0)
    assert len(trace) >= 1
    assert "load_missed" in trace.problems.noted
    assert "too few jobs" in trace.problems.lines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "philly"}, "unknown preset 'philly' .*did you mean 'philly-like'"),
        ({"days": 0}, "days is 0 .*above 0"),
        ({"days": float("nan")}, "days is nan"),
        ({"days": 1e9}, "days is 1e.09 .*at most 3660"),
        ({"load": -1}, "load is -1"),
        ({"load": 1e9}, "load is 1e.09"),
        ({"nodes": 0}, "nodes is 0"),
        ({"nodes": -2}, "nodes is -2"),
        ({"nodes": 2.5}, "nodes is 2.5, not a whole number"),
        ({"gpus_per_node": -8}, "gpus_per_node is -8"),
        ({"nodes": -2, "gpus_per_node": -8}, "nodes is -2"),
        ({"seed": 1.5}, "seed is 1.5, not a whole number"),
        ({"gpus_per_node": 0}, "gpus_per_node is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"nodes": 100_000, "days": 3_000}, "more than 5,000,000 jobs"),
    ],
)
def test_numbers_out_of_range(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"preset": "philly-like", "days": 1, "load": 0.9, "nodes": 8, **arguments}
    with pytest.raises(InputError, match=message):
        synthesize(str(given.pop("preset")), **given)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(
    preset=st.sampled_from(sorted(PRESETS)),
    days=st.floats(0.05, 3),
    load=st.floats(0.05, 2),
    nodes=st.integers(1, 20),
    gpus_per_node=st.integers(1, 9),
    seed=st.integers(0, 2**70),
)
def test_any_cluster_gets_a_valid_trace(
    preset: str, days: float, load: float, nodes: int, gpus_per_node: int, seed: int
) -> None:
    trace = synthesize(preset, days=days, load=load, nodes=nodes, gpus_per_node=gpus_per_node, seed=seed)
    assert len(trace) >= 1
    longest = round(PRESETS[preset].durations.longest_s) * SECOND
    for job, truth in zip(trace.jobs, trace.truths, strict=True):
        assert 0 < job.request.gpus <= nodes * gpus_per_node * GPU
        assert 0 <= job.submit < days * DAY
        assert truth.duration is not None and job.declared is not None
        assert SECOND <= truth.duration <= longest
        assert truth.duration <= job.declared
    wanted = load * nodes * gpus_per_node * days * 24
    if "load_missed" not in trace.problems.noted:
        assert trace.gpu_hours == pytest.approx(wanted, rel=0.05)


def _bursts(trace: Trace) -> list[list[int]]:
    """Indexes of the jobs of each burst of one user."""
    bursts: list[list[int]] = []
    current: dict[str, list[int]] = {}
    for index, job in enumerate(trace.jobs):
        burst = current.get(job.user)
        if burst is None or job.submit - trace.jobs[burst[-1]].submit >= 600 * SECOND:
            burst = current[job.user] = []
            bursts.append(burst)
        burst.append(index)
    return [burst for burst in bursts if len(burst) >= 2]


def _correlation(trace: Trace, pairs: list[tuple[int, int]]) -> float:
    logs = [log(truth.duration or 1) for truth in trace.truths]
    ones, others = [logs[a] for a, _ in pairs], [logs[b] for _, b in pairs]
    mean_one, mean_other = sum(ones) / len(ones), sum(others) / len(others)
    together = sum((a - mean_one) * (b - mean_other) for a, b in zip(ones, others, strict=True))
    spread = sum((a - mean_one) ** 2 for a in ones) * sum((b - mean_other) ** 2 for b in others)
    return float(together / spread**0.5)
