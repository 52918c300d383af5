"""What a hostile tester tried on the command line, each with one clear line as the answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainmaster as tm
from trainmaster.traces import write_csv

WEEK = "job_id,submit_s,duration_s,num_gpus\na,0,100,8\nb,0,100,8\n"
CLUSTER = ("--nodes", "1", "--gpus-per-node", "8")


@pytest.fixture
def week(tmp_path: Path) -> Path:
    path = tmp_path / "week.csv"
    path.write_text(WEEK)
    return path


def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmaster", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)  # type: ignore[call-overload,no-any-return]


def test_a_pipe_is_neither_read_nor_replaced(week: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    trace = tm.load_trace(week)
    with pytest.raises(tm.InputError, match="not a regular file, and is left alone"):
        write_csv(trace, pipe)
    assert pipe.is_fifo()
    with pytest.raises(tm.InputError, match="is a pipe"):
        tm.load_trace(pipe)
    with pytest.raises(tm.InputError, match="names no file"):
        write_csv(trace, "")


@pytest.mark.parametrize("words", [("--from", "nan"), ("--from", "inf"), ("--to", "-inf")])
def test_spans_are_finite(week: Path, words: tuple[str, str]) -> None:
    done = run("simulate", week, *CLUSTER, *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words[0] in done.stderr


def test_a_folder_where_a_result_file_should_be(week: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "jobs.csv").mkdir(parents=True)
    done = run("simulate", week, *CLUSTER, "--out", out)
    assert done.returncode == 1
    expected = f"trainmaster: {out / 'jobs.csv'}: is a folder; nothing was changed (choose another --out)\n"
    assert done.stderr == expected
    assert [path.name for path in out.iterdir()] == ["jobs.csv"]


def test_times_beyond_the_clock(tmp_path: Path) -> None:
    trace = tmp_path / "long.csv"
    rows = "".join(f"{name},0,8.9e9,8\n" for name in "abc")
    trace.write_text(f"job_id,submit_s,duration_s,num_gpus\n{rows}")
    done = run("simulate", trace, *CLUSTER, "--policy", "fifo")
    assert done.returncode == 2
    assert "times add up to more than 292 years" in done.stderr
    assert done.stderr.count("\n") == 1


RAISING = ("SystemExit(0)", "MemoryError", "OverflowError('boo')", "GeneratorExit")


@pytest.mark.parametrize("code", [*(f"raise {what}" for what in RAISING), "return self.plan(view)"])
def test_a_policy_does_not_decide_the_exit_code(week: Path, tmp_path: Path, code: str) -> None:
    file = tmp_path / "mine.py"
    head = "import trainmaster as tm\nclass Mine(tm.Policy):\n    name = 'mine'\n"
    file.write_text(f"{head}    def plan(self, view):\n        {code}\n")
    done = run("simulate", week, *CLUSTER, "--policy", file)
    assert done.returncode == 1
    assert done.stderr.startswith("trainmaster: policy mine: at 0.0 s: ")
    assert done.stderr.count("\n") == 1


def test_output_that_nobody_takes(week: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "trainmaster", "simulate", str(week), *CLUSTER, "--json"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "trainmaster: output can't be written: No space left on device"


@pytest.mark.parametrize("what", RAISING)
@pytest.mark.parametrize("method", ["pending_key", "next_change", "finished"])
def test_an_ordering_that_fails_is_named(week: Path, tmp_path: Path, method: str, what: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from trainmaster.policies import Policy\nfrom trainmaster.policies.parts.ordering import Order\n"
        f"class MyOrder(Order):\n    def {method}(self, job, now):\n        raise {what}\n"
        "class Mine(Policy):\n    name = 'mine'\n    def compose(self):\n        self.ordering = MyOrder()\n"
    )
    with pytest.raises(tm.TrainmasterError, match=r"^policy mine: at [0-9.]+ s: .*mine\.py, line 5\)$"):
        tm.simulate(tm.load_trace(week), tm.Cluster.homogeneous(1, 8), str(file))


@pytest.mark.parametrize("seed", [-1, "a", True, 1.5])
def test_seeds_are_whole_numbers(week: Path, seed: object) -> None:
    with pytest.raises(tm.InputError, match="seed"):
        tm.simulate(tm.load_trace(week), tm.Cluster.homogeneous(1, 8), "fifo", seed=[seed])  # type: ignore[list-item]


@pytest.mark.parametrize("weight", [0.0, -1.0, 1e300, float("nan")])
def test_weights_are_reasonable(week: Path, weight: float) -> None:
    with pytest.raises(tm.InputError, match="weight"):
        tm.Options(weights={"blue": weight})


def test_slow_starts_are_not_polled() -> None:
    trace = tm.synthesize("philly-like", days=0.5, load=1.2, nodes=1, seed=0)
    cluster = tm.Cluster.homogeneous(1, 8)
    knobs: dict[str, dict[str, object]] = {"srsf": {"min_run_s": 0}}
    decisions = [
        tm.simulate(
            trace, cluster, "srsf", knobs=knobs, predictor="oracle", costs=tm.Costs(restore_s=cost)
        ).summary["decisions"]
        for cost in (100, 10_000)
    ]
    assert decisions[1] < 4 * decisions[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--nodes", "1", "--gpus-per-node", "999999999"),
            "node node-0 has 999999999 GPUs (give at most 100000)",
        ),
        (("--nodes", "9" * 5000, "--gpus-per-node", "8"), "expected whole numbers >= 1"),
        ((*CLUSTER, "--seed", "9" * 5000), "expected whole numbers >= 0"),
    ],
)
def test_numbers_beyond_reason(week: Path, words: tuple[str, ...], said: str) -> None:
    done = run("simulate", week, *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
