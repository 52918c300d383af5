"""Statistics of small traces whose answers can be worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.model.job import Deadline, Job, Request
from trainmaster.model.units import GPU, SECOND, to_milli, to_ns
from trainmaster.traces import Problems, Trace, Truth, load_trace
from trainmaster.traces.statistics import Bursts, RecordedWaits, describe


def trace_of(*rows: tuple[float, float | None, float], **fields: object) -> Trace:
    """A trace of (submit s, duration s, GPUs); `fields` go to every job."""
    jobs = [
        replace(Job(str(index), index, to_ns(submit), Request(to_milli(gpus))), **fields)  # type: ignore[arg-type]
        for index, (submit, _, gpus) in enumerate(rows)
    ]
    return Trace(jobs, [Truth(None if length is None else to_ns(length)) for _, length, _ in rows])


def owned(*rows: tuple[float, str, str]) -> Trace:
    """A trace of one-GPU jobs of (submit s, tenant, user), 10 s each."""
    jobs = [
        Job(str(index), index, to_ns(submit), Request(GPU), tenant=tenant, user=user)
        for index, (submit, tenant, user) in enumerate(rows)
    ]
    return Trace(jobs, [Truth(10 * SECOND)] * len(jobs))


def test_sizes_their_edges_and_their_gpu_hours() -> None:
    found = describe(
        trace_of((0, 3600, 0.5), (1, 3600, 1), (2, 3600, 2), (3, 3600, 4), (4, 1800, 8), (5, 900, 9))
    )
    assert [(size.gpus, size.jobs) for size in found.sizes] == [("1", 2), ("2-4", 2), ("5-8", 1), (">8", 1)]
    assert [size.share for size in found.sizes] == pytest.approx([2 / 6, 2 / 6, 1 / 6, 1 / 6])
    total = 0.5 + 1 + 2 + 4 + 4 + 2.25
    assert found.gpu_hours == pytest.approx(total)
    assert [size.gpu_hours_share for size in found.sizes] == pytest.approx(
        [1.5 / total, 6 / total, 4 / total, 2.25 / total]
    )
    assert (found.mean_gpus, found.max_gpus) == (pytest.approx(24.5 / 6), 9)
    assert found.mean_demand_gpus == pytest.approx(total * 3600 / 5)


def test_quantiles_are_of_the_sorted_list() -> None:
    found = describe(trace_of(*[(0, length, 1) for length in range(200, 0, -1)])).duration
    assert (found.p10_s, found.median_s, found.p90_s, found.p99_s, found.max_s) == (21, 101, 181, 199, 200)
    assert found.mean_s == 100.5


def test_ranges_of_durations_do_not_include_their_end() -> None:
    edges = (59, 60, 599, 600, 3599, 3600, 86_400, 604_799, 604_800)
    found = describe(trace_of(*[(0, length, 1) for length in edges])).duration_ranges
    assert [part.jobs for part in found] == [1, 2, 2, 1, 0, 2, 1]
    assert sum(part.share for part in found) == pytest.approx(1)


def test_hourly_counts_run_from_the_first_hour_to_the_last() -> None:
    found = describe(trace_of((3600, 1, 1), (7199, 1, 1), (14_400, 1, 1), (18_000.5, 1, 1)))
    assert found.jobs_per_hour == (2, 0, 0, 1, 1)
    assert found.hourly_mean == 0.8
    assert found.hourly_dispersion == pytest.approx((1.44 + 0.64 * 2 + 0.04 * 2) / 5 / 0.8)
    assert found.span_s == 14_400.5


def test_bursts_are_runs_of_one_user_with_gaps_below_600_s() -> None:
    found = describe(
        owned(
            (0, "t", "ann"),
            (10, "t", "bob"),  # another user in between does not end a burst
            (599, "t", "ann"),
            (1198.9, "t", "ann"),
            (1798.9, "t", "ann"),  # 600 s later: a new one
            (1800, "t", "ann"),
            (5000, "t", "bob"),
        )
    )
    assert found.bursts == Bursts("user", pytest.approx(5 / 7), 2.5, 3)
    assert (found.users, found.tenants) == (2, 1)


def test_bursts_go_by_tenant_or_altogether_where_no_user_is_known() -> None:
    by_tenant = describe(owned((0, "a", ""), (1, "b", ""), (2, "a", "")))
    assert by_tenant.bursts == Bursts("tenant", pytest.approx(2 / 3), 2, 2)
    of_anybody = describe(owned((0, "", ""), (1, "", ""), (2, "", "")))
    assert of_anybody.bursts == Bursts("trace", 1, 3, 3)
    assert of_anybody.tenant_shares == ()
    alone = describe(owned((0, "", ""), (600, "", "")))
    assert alone.bursts == Bursts("trace", 0, None, 0)


def test_tenants_by_number_of_jobs_then_name() -> None:
    trace = owned((0, "b", ""), (1, "c", ""), (2, "a", ""), (3, "c", ""))
    trace.truths[0] = Truth(70 * SECOND)
    found = [(share.name, share.jobs, share.gpu_hours_share) for share in describe(trace).tenant_shares]
    assert found == [("c", 2, 0.2), ("a", 1, 0.1), ("b", 1, 0.7)]


def test_statuses_and_deadlines() -> None:
    trace = trace_of((0, 10, 1), (1, 30, 1), deadlines=(Deadline(to_ns(60)),))
    trace.truths[:] = [Truth(10 * SECOND, "failed"), Truth(30 * SECOND, "completed")]
    found = describe(trace)
    assert [(status.name, status.share, status.gpu_hours_share) for status in found.statuses] == [
        ("completed", 0.5, 0.75),
        ("failed", 0.5, 0.25),
    ]
    assert found.deadline_share == 1
    assert describe(trace_of((0, 1, 1))).statuses == ()


def test_declared_times_against_the_real_ones() -> None:
    trace = trace_of((0, 10, 1), (1, 20, 1), (2, 100, 1), (3, 5, 1), (4, None, 1), declared=to_ns(40))
    trace.jobs[3] = replace(trace.jobs[3], declared=None)
    found = describe(trace).declared
    assert found.share == 0.8
    assert found.median_ratio == 2, "of 0.4, 2 and 4"
    assert found.mean_accuracy == pytest.approx((0.25 + 0.5 + 2.5) / 3)
    assert found.exceeded == pytest.approx(1 / 3)
    nobody = describe(trace_of((0, 10, 1))).declared
    assert (nobody.share, nobody.median_ratio) == (0, None)


def test_what_does_not_apply_is_none_never_zero() -> None:
    found = describe(trace_of((0, None, 1), (50, None, 2)))
    assert (found.gpu_hours, found.mean_demand_gpus, found.duration.median_s) == (None, None, None)
    assert found.sizes[0].gpu_hours_share is None
    assert found.duration.jobs == 0
    empty = describe(Trace([], []))
    assert (empty.jobs, empty.hourly_mean, empty.hourly_dispersion, empty.mean_gpus) == (0, None, None, None)
    one = describe(trace_of((7, 3600, 2)))
    assert (one.span_s, one.mean_demand_gpus, one.gpu_hours) == (0, None, 2)


def test_dropped_rows_are_told() -> None:
    trace = trace_of((0, 1, 1))
    trace.problems = Problems()
    for row in (2, 3):
        trace.problems.drop("zero_gpus", row)
    trace.problems.note("odd")
    found = describe(trace)
    assert (found.dropped, found.noted) == ({"zero_gpus": 2}, {"odd": 1})


def test_it_is_one_json_document_without_the_hourly_series() -> None:
    document = json.loads(json.dumps(describe(trace_of((0, 1, 1), (9, None, 2))).as_dict(), allow_nan=False))
    assert document["jobs"] == 2
    assert document["sizes"][1]["gpus"] == "2-4"
    assert "jobs_per_hour" not in document


def test_known_figures_of_the_philly_log(data_dir: Path) -> None:
    found = describe(load_trace(data_dir / "traces" / "philly_2017_82k.csv.gz"))
    assert found.jobs == 82_247
    assert [round(100 * size.share, 1) for size in found.sizes] == [93.2, 4.5, 2.0, 0.4]
    assert (found.duration.median_s, round(found.duration.mean_s or 0)) == (1144, 13_136)
    assert found.hourly_dispersion == pytest.approx(161.4, abs=0.1)
    assert (len(found.tenant_shares), round(found.tenant_shares[0].share, 2)) == (15, 0.5)
    assert round(found.mean_demand_gpus or 0) == 374


def test_recorded_waits_of_the_jobs_that_have_one() -> None:
    trace = trace_of(*[(0, 10, 1)] * 5)
    waits = (40, None, 0, 10, 30)
    trace.truths = [Truth(10 * SECOND, queue=None if wait is None else wait * SECOND) for wait in waits]
    found = describe(trace)
    assert found.recorded_wait == RecordedWaits(jobs=4, share=0.8, mean_s=20.0, median_s=30.0)
    assert found.as_dict()["recorded_wait"] == {"jobs": 4, "share": 0.8, "mean_s": 20.0, "median_s": 30.0}


def test_without_a_recorded_wait_there_is_none() -> None:
    assert describe(trace_of((0, 10, 1))).as_dict()["recorded_wait"] is None
    assert describe(trace_of()).recorded_wait is None
