"""The examples run, and do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trainmaster as tm
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.registry import policy_class
from trainmaster.testing import PolicyContract
from trainmaster.traces import Truth

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
POLICY = str(EXAMPLES / "my_policy.py")


def test_every_example_has_a_test() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == ["capacity_planning.py", "my_policy.py"]


# -- capacity_planning.py -----------------------------------------------------------------------


def plan(folder: Path, *arguments: str) -> list[str]:
    """The lines that the example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "capacity_planning.py"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_capacity_planning_names_the_fewest_nodes(tmp_path: Path) -> None:
    """40 jobs of one GPU and 100 s at once: with n GPUs the last starts after (40/n - 1) x 100 s."""
    rows = "".join(f"{number},0,100,1\n" for number in range(40))
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,duration_s,num_gpus\n" + rows)
    words = ["jobs.csv", "--gpus-per-node", "1", "--policy", "fifo", "--share", "1", "--processes", "1"]
    lines = plan(tmp_path, *words, "--nodes", "20,10,8,5", "--bearable-s", "300")
    assert lines[0] == "jobs: 40 jobs over 0.0 days, 1 GPU-hours"
    table = lines.index("nodes       20       10        8        5")
    minutes = [100 / 60, 300 / 60, 400 / 60, 700 / 60]
    assert lines[table + 1].split() == ["fifo", *(f"{wait:.1f}" for wait in minutes)]
    assert lines[-2:] == [
        "fewest nodes for a wait of at most 5 minutes",
        "fifo       10    mean wait 2.5 minutes, 0 preemptions",
    ]


def test_capacity_planning_says_when_nothing_is_enough(tmp_path: Path) -> None:
    lines = plan(tmp_path, "--nodes", "8,12", "--policy", "fifo,srtf", "--bearable-s", "0")
    assert lines[0].startswith("synthetic-philly-like: ")
    assert [line.split() for line in lines[-2:]] == [["fifo", ">", "12"], ["srtf", ">", "12"]]


# -- my_policy.py -------------------------------------------------------------------------------


def trace_of(*rows: tuple[str, float, float, float, float | None]) -> tm.Trace:
    """A trace from (id, submit, duration, GPUs, declared), times in seconds."""
    jobs, truths = [], []
    for number, (name, submit, duration, gpus, declared) in enumerate(rows):
        request = Request(round(gpus * GPU))
        limit = None if declared is None else round(declared * SECOND)
        jobs.append(Job(name, number, round(submit * SECOND), request, declared=limit))
        truths.append(Truth(round(duration * SECOND)))
    return tm.Trace(jobs, truths)


def starts_and_ends(trace: tm.Trace, policy: str) -> dict[str, tuple[float, float, int]]:
    """(first start, end, preemptions) by job on one node of two GPUs, where stopping costs nothing."""
    free = tm.Costs(checkpoint_s=0, restore_s=0)
    result = tm.simulate(trace, tm.Cluster.homogeneous(1, 2), policy, costs=free, validate=True)
    return {
        str(row["job_id"]): (float(row["first_start_s"]), float(row["finish_s"]), int(row["preemptions"]))
        for row in result.jobs
    }


HOUR, DAY = 3_600.0, 86_400.0


class TestDebugFirst(PolicyContract):
    policy = policy_class(POLICY)


def test_debug_runs_go_first_and_batch_jobs_give_way() -> None:
    trace = trace_of(
        ("batch", 0, 1_000, 2, DAY),
        ("waits", 5, 1_000, 2, DAY),
        ("debug", 100, 50, 1, HOUR),
        ("large", 100, 50, 2, DAY),
    )
    found = starts_and_ends(trace, POLICY)
    assert found["debug"] == (100, 150, 0)
    assert found["batch"] == (0, 1_050, 1)
    assert found["waits"] == (1_050, 2_050, 0), "batch jobs do not displace each other"
    assert found["large"] == (2_050, 2_100, 0)


def test_a_claim_that_is_exceeded_counts_no_more() -> None:
    rows = (("liar", 0.0, 5_000.0, 2.0, 600.0), ("debug", 700.0, 50.0, 2.0, 600.0))
    assert starts_and_ends(trace_of(*rows), POLICY)["debug"] == (700, 750, 0)
    honest = (("long", 0.0, 5_000.0, 2.0, 3_600.0), rows[1])
    found = starts_and_ends(trace_of(*honest), POLICY)
    assert found["debug"] == (3_600, 3_650, 0), "a debug run displaces no debug run before its time is up"
    assert found["long"] == (0, 5_050, 1)


@pytest.mark.parametrize(
    ("policy", "start"),
    [(POLICY, 100), (f"{POLICY}(gpus=1)", 1_000), (f"{POLICY}(declared_s=60)", 1_000)],
)
def test_knobs_say_what_a_debug_run_is(policy: str, start: float) -> None:
    trace = trace_of(("batch", 0, 1_000, 2, None), ("small", 100, 50, 2, HOUR))
    assert starts_and_ends(trace, policy)["small"][0] == start


def test_my_policy_shortens_the_wait_of_debug_runs_on_a_busy_cluster() -> None:
    trace = tm.synthesize("helios-like", days=2, load=1.2, nodes=8, seed=3)
    debug = {
        job.id for job in trace.jobs if job.request.gpus <= 2 * GPU and (job.declared or 0) <= HOUR * SECOND
    }
    assert 0 < len(debug) < len(trace)
    waits = {}
    for policy in ("fifo(backfill=greedy)", POLICY):
        jobs = tm.simulate(trace, tm.Cluster.homogeneous(8, 8), policy, validate=True).jobs
        waits[policy] = jobs["wait_s"][np.isin(jobs["job_id"], sorted(debug))].mean()
    assert waits[POLICY] < 0.2 * waits["fifo(backfill=greedy)"]
