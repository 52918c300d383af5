"""The simulator finishes every job at the very nanosecond that brute force says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference

import trainmaster as tm
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, SECOND
from trainmaster.sim.options import Costs
from trainmaster.traces import Truth


@pytest.fixture(scope="module", autouse=True)
def leave_the_garbage_collector_alone() -> Iterator[None]:
    """A collection before each run would take most of the time of these tiny ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainmaster.sim.run.rare_collections", nullcontext)
        yield


LIMIT_S = 40
POLICIES = {
    "fifo": "fifo",
    "greedy": "fifo(backfill=greedy)",
    "easy": "fifo(backfill=easy)",
    "sjf": "sjf",
    "srtf": "srtf",
    "las": f"las(limit={LIMIT_S})",
}
UNITS = (SECOND, SECOND // 8, 333_333_333)
"""Whole seconds, eighths, and what no float holds."""


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int]]]:
    """(nodes, GPUs per node, jobs as (submit, duration, gpus)); many ties and equal instants."""
    nodes, per_node = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    unit = draw(st.sampled_from(UNITS))
    gap = st.sampled_from((0, 0, 0, 1, 2, 5, 20))
    duration = st.one_of(st.integers(1, 6), st.integers(1, 50))
    gpus = st.one_of(st.integers(1, min(2, nodes * per_node)), st.integers(1, nodes * per_node))
    rows = draw(st.lists(st.tuples(gap, duration, gpus), min_size=1, max_size=25))
    jobs = []
    submit = 0
    for after, length, size in rows:
        submit += after
        jobs.append((submit * unit, length * unit, size))
    return nodes, per_node, jobs


def simulated(
    nodes: int, per_node: int, jobs: list[tuple[int, int, int]], policy: str, placement: str
) -> list[tuple[int, int]]:
    """(first start, finish) by job, ns."""
    requests = {size: Request(size * GPU) for _, _, size in jobs}
    trace = tm.Trace(
        [Job(f"j{row}", row, submit, requests[size]) for row, (submit, _, size) in enumerate(jobs)],
        [Truth(duration) for _, duration, _ in jobs],
    )
    cluster = tm.Cluster.homogeneous(nodes, per_node)
    result = tm.simulate(
        trace,
        cluster,
        policy,
        placement=placement,
        predictor="oracle",
        costs=Costs(0, 0, 0),
        validate=True,
    )
    record = result.records[0]
    return list(zip(record.first_start, record.finish, strict=True))


def by_brute_force(
    nodes: int, per_node: int, jobs: list[tuple[int, int, int]], policy: str, placement: str
) -> list[tuple[int | None, int | None]]:
    """The same, the slow way."""
    shape = (1, nodes * per_node) if placement == "pool" else (nodes, per_node)
    reference = Reference(*shape, policy, limit=LIMIT_S * SECOND)
    return [(task.start, task.finish) for task in reference.run(jobs)]


@pytest.mark.parametrize(
    ("policy", "placement"),
    [
        *((policy, "pool") for policy in POLICIES),
        ("fifo", "pack"),
        ("greedy", "pack"),
        ("easy", "pack"),
        ("sjf", "pack"),
    ],
)
@settings(max_examples=80)
@given(workload=workloads())
def test_every_job_ends_when_brute_force_says(
    policy: str, placement: str, workload: tuple[int, int, list[tuple[int, int, int]]]
) -> None:
    expected = by_brute_force(*workload, policy, placement)
    assert simulated(*workload, POLICIES[policy], placement) == expected


def test_the_reference_knows_the_textbook_case() -> None:
    """Four jobs end at 10, 12, 14, 16; a gang of 4 arrives at 1, short jobs later."""
    small = [(0, end, 1) for end in (10, 12, 14, 16)]
    jobs = [*small, (1, 20, 4), (9, 4, 1), (10, 8, 1)]
    greedy = Reference(4, 1, "greedy").run(jobs)
    easy = Reference(4, 1, "easy").run(jobs)
    assert [task.start for task in greedy] == [0, 0, 0, 0, 20, 10, 12]
    assert [task.start for task in easy] == [0, 0, 0, 0, 16, 10, 36]
