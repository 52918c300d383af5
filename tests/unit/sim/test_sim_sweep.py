"""`simulate` as a function: policies, capacities and seeds in one call, knobs, windows, and what is wrong."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from sim_helpers import trace_of

import trainmaster as tm
from trainmaster.model.errors import InputError, PolicyError
from trainmaster.model.job import Job, Request
from trainmaster.policies import Policy
from trainmaster.sim.options import Costs, Options
from trainmaster.traces import Truth

ONE = tm.Cluster.homogeneous(1, 2)
TRACE = ((0, 100, 2), (10, 20, 2), (20, 5, 1), (30, 50, 1))


def runs(*arguments: Any, **settings: Any) -> list[dict[str, Any]]:
    """Summaries of the small trace."""
    return tm.simulate(trace_of(*TRACE), *arguments, **settings).runs


class TestSweeps:
    def test_every_policy_on_every_capacity_with_every_seed(self) -> None:
        clusters = [tm.Cluster.homogeneous(count, 2) for count in (1, 2)]
        found = [
            (run["cluster"]["nodes"], run["seed"], run["policy"])
            for run in runs(clusters, "fifo,las(queues=3)", seed=[5, 7])
        ]
        assert found == list(itertools.product((1, 2), (5, 7), ("fifo", "las(queues=3)")))

    def test_a_list_of_policies_is_a_list_of_specifications(self) -> None:
        assert [run["policy"] for run in runs(ONE, ["fifo", "las(queues=3,limit=5)"])] == [
            "fifo",
            "las(queues=3,limit=5)",
        ]

    def test_runs_do_not_depend_on_their_neighbours(self) -> None:
        alone = runs(ONE, "srtf")[0]
        among = runs(ONE, "las,srtf,drf")[1]
        for name in ("mean_jct_s", "preemptions", "makespan_s", "decisions", "events"):
            assert alone[name] == among[name]

    def test_progress_adds_up_over_the_runs(self) -> None:
        told: list[tuple[int, int]] = []
        runs(ONE, "fifo,las,drf", progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (12, 12)
        assert [done for done, _ in told] == sorted(done for done, _ in told)

    def test_processes_that_are_more_than_runs(self) -> None:
        assert [run["policy"] for run in runs(ONE, "fifo,las", jobs=8)] == ["fifo", "las"]

    def test_an_error_in_a_worker_reaches_the_caller(self) -> None:
        class Bad(Policy):
            """Starts everything everywhere."""

            name = "bad"

            def plan(self, view: Any) -> None:
                for members in view.pending_classes:
                    for job in members.ordered():
                        from trainmaster.model.allocation import Allocation, Share

                        view.start(job, Allocation.of([Share(0, 0b11, 2000)]))

        for jobs in (1, 2):
            with pytest.raises(PolicyError, match=r"^policy bad: job j1: node node-0 has 0 whole GPUs free"):
                tm.simulate(trace_of(*TRACE), ONE, [Bad, "fifo"], jobs=jobs)


class TestSettings:
    def test_knobs_of_a_policy_file_whatever_its_path(self, tmp_path: Path) -> None:
        file = tmp_path / "mine (2)" / "smallest.py"
        file.parent.mkdir()
        file.write_text(
            "from trainmaster.policies.base import Policy\n"
            "from trainmaster.policies.knobs import Knob\n"
            "class Smallest(Policy):\n"
            '    """Mine."""\n'
            '    name = "smallest"\n'
            '    knobs = (Knob("size", 1, "how many", low=1),)\n'
        )
        found = runs(ONE, [str(file)], options=Options(knobs={str(file): {"size": "3"}}))
        assert found[0]["knobs"] == {"size": 3}

    def test_knobs_by_policy_and_for_all(self) -> None:
        options = Options(knobs={"las": {"queues": "4"}, "*": {"min_run_s": 5, "queues": 3}})
        found = runs(ONE, "las,srtf,fifo,las(queues=6)", options=options)
        assert [run["knobs"].get("queues") for run in found] == [4, None, None, 6]
        assert [run["knobs"].get("min_run_s") for run in found] == [5.0, 5.0, None, 5.0]

    def test_the_minimum_run_time_is_0_only_in_a_pool_without_costs(self) -> None:
        free = Costs(0, 0, 0)
        for placement, costs, expected in (
            ("pool", free, 0),
            ("pool", Costs(), 60),
            ("pack", free, 60),
            ("spread", free, 60),
        ):
            (run,) = runs(ONE, "srtf", placement=placement, costs=costs)
            assert run["knobs"]["min_run_s"] == expected

    def test_defaults(self) -> None:
        (run,) = runs(ONE)
        assert (run["policy"], run["predictor"], run["placement"], run["seed"]) == (
            "fifo",
            "history",
            "pack",
            0,
        )
        assert (Costs().checkpoint_s, Costs().restore_s, Costs().start_s) == (6, 24, 0)

    def test_windows_leave_jobs_out_of_the_figures_only(self) -> None:
        full, inside = runs(ONE)[0], runs(ONE, warmup_s=5, cooldown_s=5)[0]
        assert (full["jobs"], inside["jobs"]) == (4, 2)
        assert inside["makespan_s"] == full["makespan_s"]
        assert set(inside["tenants"]) == {""}
        assert inside["tenants"][""]["jobs"] == 2

    def test_a_wider_cluster_is_no_worse_under_fifo(self) -> None:
        clusters = [tm.Cluster.homogeneous(count, 2) for count in (1, 2, 3)]
        jct = [run["mean_jct_s"] for run in runs(clusters)]
        assert jct == sorted(jct, reverse=True)

    def test_weights_are_entitlements(self) -> None:
        jobs = [Job(f"{t}{row}", row, 0, Request(1000), tenant=t) for row, t in enumerate("aabb")]
        trace = tm.Trace(jobs, [Truth(10**11)] * 4)
        table = tm.simulate(trace, ONE, "drf", weights={"b": 9.0}, predictor="oracle").jobs
        first = {str(row["job_id"]) for row in table if row["first_start_s"] == 0}
        assert first == {"b2", "b3"}, "2/9 is less than 1"
        table = tm.simulate(trace, tm.Cluster.homogeneous(1, 3), "drf", weights={"b": 9.0}).jobs
        first = {str(row["job_id"]) for row in table if row["first_start_s"] == 0}
        assert first == {"a0", "b2", "b3"}


class TestErrors:
    @pytest.mark.parametrize(
        ("settings", "what"),
        [
            ({"placment": "pool"}, "unknown setting 'placment' (did you mean 'placement'?)"),
            ({"options": Options(), "predictor": "oracle"}, "settings and options exclude each other"),
            ({"jobs": 0}, "--jobs is 0 (give at least 1 process)"),
            ({"policy": []}, "nothing to simulate (give at least one cluster, one seed and one policy)"),
            ({"seed": []}, "nothing to simulate (give at least one cluster, one seed and one policy)"),
            ({"policy": "fifo,"}, "an empty policy name in 'fifo,' (separate names by one comma)"),
            ({"predictor": "orakle"}, "unknown predictor 'orakle' (did you mean 'oracle'?)"),
            ({"knobs": {"*": {"quantum": 3}}}, "no simulated policy has a knob 'quantum'"),
            (
                {"knobs": {"lass": {"queues": 3}}, "policy": "las"},
                "--set names policy 'lass', which is not simulated (did you mean 'las'?)",
            ),
            ({"knobs": {"fifo": {"queues": 3}}}, "policy fifo has no knob 'queues'"),
        ],
    )
    def test_are_one_line(self, settings: dict[str, Any], what: str) -> None:
        with pytest.raises(InputError) as caught:
            tm.simulate(trace_of(*TRACE), ONE, **settings)
        assert str(caught.value).startswith(what)
        assert "\n" not in str(caught.value)

    def test_no_cluster(self) -> None:
        with pytest.raises(InputError, match="nothing to simulate"):
            tm.simulate(trace_of(*TRACE), [])

    def test_a_bad_predictor_is_found_before_anything_runs(self, tmp_path: Path) -> None:
        with pytest.raises(InputError):
            tm.simulate(trace_of(*TRACE), ONE, "fifo,las", predictor="noisy", jobs=2)
