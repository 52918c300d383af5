"""Figures of a schedule: by hand on a small one, by brute force on random ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.metrics import Ledger, job_measures, lanes, rank_value, time_series
from trainmaster.metrics.measures import counted_jobs, deadline_measures, tenant_measures
from trainmaster.metrics.series import MAX_BUCKETS, bucket_means, rounded
from trainmaster.model.action import Start, Stop
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import Cancelled, Finished, Lost, Started, Stopped, Submitted
from trainmaster.model.job import Deadline, Job, Request
from trainmaster.model.units import HOUR, SECOND


def gpus(count: int, node: int = 0, first: int = 0) -> Allocation:
    return Allocation.of([Share(node, (1 << count) - 1 << first, count * 1000)])


def example(first: int = 0) -> Ledger:
    """On 4 GPUs: `a` takes 2 from 0 to 100; `b` takes 4, waits, is stopped, loses work; `c` is cancelled.

    Seconds after `first`, ns. b: asked at 100, runs 110-160, stopped and saved 166, asked 200, runs
    220-260, lost with 30 saved of 90, asked 300, runs 300-370.
    """
    jobs = {
        "a": Job("a", 0, first, Request(2000), tenant="t", deadlines=(Deadline(50 * SECOND, 4.0),)),
        "b": Job(
            "b",
            1,
            first + 20 * SECOND,
            Request(4000),
            tenant="s",
            deadlines=(Deadline(100 * SECOND, 8.0), Deadline(400 * SECOND, 2.0)),
        ),
        "c": Job("c", 2, first + 50 * SECOND, Request(1000), tenant="t"),
    }
    ledger = Ledger()
    instants = [
        (0, [Submitted(jobs["a"])], [Start("a", gpus(2))]),
        (0, [Started("a")], []),
        (20, [Submitted(jobs["b"])], []),
        (50, [Submitted(jobs["c"])], []),
        (60, [Cancelled("c")], []),
        (100, [Finished("a")], [Start("b", gpus(4))]),
        (110, [Started("b")], []),
        (160, [], [Stop("b")]),
        (166, [Stopped("b")], []),
        (200, [], [Start("b", gpus(4))]),
        (220, [Started("b")], []),
        (260, [Lost("b", 30 * SECOND)], []),
        (300, [], [Start("b", gpus(4))]),
        (300, [Started("b")], []),
        (370, [Finished("b")], []),
    ]
    for at, events, actions in instants:
        ledger.record(first + at * SECOND, events, actions)  # type: ignore[arg-type]
    ledger.close(first + 370 * SECOND)
    return ledger


class TestJobMeasures:
    def test_by_hand(self) -> None:
        found = job_measures(example(), 4)
        assert found == {
            "jobs": 3,
            "finished": 2,
            "mean_jct_s": (100 + 350) / 2,
            "median_jct_s": 225.0,
            "p90_jct_s": 350.0,
            "p99_jct_s": 350.0,
            "mean_wait_s": (0 + 350 - 160) / 2,
            "mean_first_wait_s": (0 + 80) / 2,
            "makespan_s": 370.0,
            "utilization": (2 * 100 + 4 * 100) / (4 * 370),
            "utilization_in_span": 2 * 50 / (4 * 50),
            "preemptions": 1,
            "overhead_gpu_s": 4 * (10 + 6 + 20),
            "lost_gpu_s": 4 * 60,
            "mean_run_s": (100 + 160) / 2,
        }

    def test_warm_up_and_cool_down_count_jobs_out_but_not_their_gpus(self) -> None:
        found = job_measures(example(), 4, warmup_s=10, cooldown_s=10)
        assert (found["jobs"], found["finished"], found["mean_jct_s"]) == (1, 1, 350)
        assert found["utilization"] == job_measures(example(), 4)["utilization"]

    def test_windows_are_measured_from_the_first_and_last_submission(self) -> None:
        submit = np.array([5.0, 10.0, 15.0, 20.0])
        assert counted_jobs(submit, 5, 0).tolist() == [False, True, True, True]
        assert counted_jobs(submit, 0, 5).tolist() == [True, True, True, False]
        assert counted_jobs(submit, 100, 100).tolist() == [False] * 4
        assert counted_jobs(np.zeros(0), 1, 1).tolist() == []

    def test_what_does_not_apply_is_none_never_0(self) -> None:
        ledger = Ledger()
        ledger.record(0, [Submitted(Job("a", 0, 0, Request(1000)))], [])
        ledger.close(5)
        found = job_measures(ledger, 4)
        none = ("mean_jct_s", "median_jct_s", "p99_jct_s", "mean_wait_s", "makespan_s", "utilization")
        assert [found[name] for name in (*none, "mean_first_wait_s", "mean_run_s")] == [None] * 8
        assert (found["jobs"], found["finished"], found["preemptions"]) == (1, 0, 0)

    def test_quantiles_are_elements(self) -> None:
        values = np.arange(100.0)
        assert (rank_value(values, 0.99), rank_value(values, 0.9), rank_value(values, 0.0)) == (99, 90, 0)
        assert rank_value(np.array([7.0]), 0.99) == 7
        assert rank_value(np.zeros(0), 0.5) is None


class TestDeadlines:
    def test_by_hand(self) -> None:
        """a ends at 100 > 50: missed, all its value lost; b misses the first, reaches 2 of 8."""
        ledger = example()
        found = deadline_measures(ledger, np.ones(3, dtype=bool))
        assert found == {
            "slo_jobs": 2,
            "slo_missed": 2,
            "miss_rate": 1.0,
            "weighted_miss_rate": (1 + 0.75) / 2,
            "best_effort_mean_jct_s": None,
        }

    def test_a_deadline_is_met_at_its_very_instant(self) -> None:
        ledger = Ledger()
        job = Job("a", 0, 0, Request(1000), deadlines=(Deadline(9 * SECOND),))
        ledger.record(0, [Submitted(job)], [Start("a", gpus(1))])
        ledger.record(9 * SECOND, [Finished("a")], [])
        assert deadline_measures(ledger, np.ones(1, dtype=bool))["slo_missed"] == 0

    def test_without_any_nothing_applies(self) -> None:
        ledger = Ledger()
        ledger.record(0, [Submitted(Job("a", 0, 0, Request(1000)))], [])
        assert set(deadline_measures(ledger, np.ones(1, dtype=bool)).values()) == {None}


def test_tenants_by_hand() -> None:
    found = tenant_measures(example(), np.ones(3, dtype=bool))
    assert list(found) == ["s", "t"]
    assert found["s"] == {"jobs": 1, "mean_jct_s": 350.0, "gpu_s": 160 * 4, "ltgf": None}
    assert found["t"] == {"jobs": 2, "mean_jct_s": 100.0, "gpu_s": 200, "ltgf": None}


class TestSeries:
    @settings(max_examples=100)
    @given(
        intervals=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(1, 8)), max_size=15),
        width=st.sampled_from((1, 7, 10)),
    )
    def test_bucket_means_are_integrals(self, intervals: list[tuple[int, int, int]], width: int) -> None:
        count = 12
        level = [0.0] * (width * count)
        for start, length, weight in intervals:
            for second in range(start, min(start + length, len(level))):
                level[second] += weight
        expected = [sum(level[width * bucket : width * (bucket + 1)]) / width for bucket in range(count)]
        starts = np.array([start for start, _, _ in intervals], dtype=float)
        ends = starts + np.array([length for _, length, _ in intervals], dtype=float)
        weights = np.array([weight for _, _, weight in intervals], dtype=float)
        found = bucket_means(starts, ends, weights, float(width), count)
        assert found.tolist() == pytest.approx(expected, abs=1e-9)

    def test_by_hand(self) -> None:
        series = time_series(example())
        hour = 3600.0
        assert (series["width_s"], series["start_s"]) == (hour, 0.0)
        held = 2 * 100 + 4 * (66 + 60 + 70)
        wanted = 2 * 100 + 4 * 350 + 1 * 10
        assert series["used_gpus"] == [round(held / 3600, 3)]
        assert series["running_jobs"] == [round((100 + 66 + 60 + 70) / 3600, 3)]
        assert series["pending_gpus"] == [round((wanted - held) / 3600, 3)]
        assert series["pending_jobs"] == [round((100 + 350 + 10 - 296) / 3600, 3)]

    def test_buckets_are_whole_hours_and_few(self) -> None:
        ledger = Ledger()
        job = Job("a", 0, 3 * HOUR + 5, Request(1000))
        ledger.record(job.submit, [Submitted(job)], [Start("a", gpus(1))])
        ledger.record(job.submit, [Started("a")], [])
        ledger.record(5000 * HOUR, [Finished("a")], [])
        series = time_series(ledger)
        assert (series["width_s"] % 3600, series["start_s"]) == (0, 0)
        assert len(series["used_gpus"]) <= MAX_BUCKETS
        assert series["used_gpus"][1:-1] == [1.0] * (len(series["used_gpus"]) - 2)

    def test_never_more_than_there_is(self) -> None:
        """One ends and another begins at every hour: intervals are half-open."""
        ledger = Ledger()
        for row in range(5):
            job = Job(f"j{row}", row, row * HOUR, Request(1000))
            events = [Submitted(job)] if row == 0 else [Finished(f"j{row - 1}"), Submitted(job)]
            ledger.record(row * HOUR, events, [Start(job.id, gpus(1))])
            ledger.record(row * HOUR, [Started(job.id)], [])
        ledger.record(5 * HOUR, [Finished("j4")], [])
        assert time_series(ledger)["used_gpus"] == [1.0] * 5

    def test_files_hold_no_minus_zero(self) -> None:
        assert str(rounded(np.array([-1e-12, -0.0, 1.23456]))) == "[0.0, 0.0, 1.235]"

    def test_an_empty_ledger_gives_empty_buckets(self) -> None:
        assert time_series(Ledger())["used_gpus"] == [0.0]

    @pytest.mark.parametrize("first_s", [1_700_000_123, 604_800, -86_400, -100])
    def test_they_count_from_the_first_submission(self, first_s: int) -> None:
        """Whatever the trace's clock says: seconds since 1970, a slice's start, less than 0."""
        at_zero, later = time_series(example()), time_series(example(first_s * SECOND))
        assert (at_zero.pop("first_submission_s"), later.pop("first_submission_s")) == (0, first_s)
        assert later == at_zero
        cluster = Cluster.homogeneous(1, 4)
        assert lanes(example(first_s * SECOND), cluster, later) == lanes(example(), cluster, at_zero)


class TestLanes:
    def test_segments_tell_work_from_overhead(self) -> None:
        ledger = example()
        found = lanes(ledger, Cluster.homogeneous(1, 4), time_series(ledger))
        assert found is not None
        assert found["nodes"] == [{"name": "node-0", "gpus": 4}]
        assert (found["from_s"], found["to_s"]) == (0.0, 24 * 3600.0)
        b = [segment[2:4] + segment[7:] for segment in found["segments"] if segment[4] == "b"]
        assert b == [
            [100.0, 110.0, "overhead"],
            [110.0, 160.0, "run"],
            [160.0, 166.0, "overhead"],
            [200.0, 220.0, "overhead"],
            [220.0, 260.0, "run"],
            [300.0, 370.0, "run"],
        ]
        assert found["segments"][0] == [0, 0b11, 0.0, 100.0, "a", "t", 2.0, "run"]

    def test_a_gang_has_a_segment_on_each_node(self) -> None:
        ledger = Ledger()
        both = Allocation.of([Share(0, 0b1, 1000), Share(1, 0b10, 1000)])
        ledger.record(0, [Submitted(Job("a", 0, 0, Request(2000)))], [Start("a", both)])
        ledger.record(0, [Started("a")], [])
        ledger.record(9 * SECOND, [Finished("a")], [])
        found = lanes(ledger, Cluster.homogeneous(2, 2), time_series(ledger))
        assert found is not None
        assert [segment[:2] for segment in found["segments"]] == [[0, 0b1], [1, 0b10]]

    def test_a_pool_and_an_idle_cluster_have_none(self) -> None:
        ledger = example()
        assert lanes(ledger, Cluster.homogeneous(1, 4).as_pool(), time_series(ledger)) is None
        assert lanes(Ledger(), Cluster.homogeneous(1, 4), time_series(Ledger())) is None

    def test_only_the_busiest_day_is_shown(self) -> None:
        ledger = Ledger()
        for row, (at, count) in enumerate(((0, 1), (100, 4), (200, 1))):
            job = Job(f"j{row}", row, at * HOUR, Request(count * 1000))
            ledger.record(at * HOUR, [Submitted(job)], [Start(job.id, gpus(count))])
            ledger.record(at * HOUR, [Started(job.id)], [])
            ledger.record((at + 2) * HOUR, [Finished(job.id)], [])
        found = lanes(ledger, Cluster.homogeneous(1, 4), time_series(ledger))
        assert found is not None
        assert {segment[4] for segment in found["segments"]} == {"j1"}
        assert found["from_s"] <= 100 * 3600 < found["to_s"] == found["from_s"] + 24 * 3600
