"""The same input and seed give the same bytes: whatever the hash seed, the processes, the neighbours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trainmaster as tm
from trainmaster.cli.app import build
from trainmaster.model.action import Action
from trainmaster.model.event import Event
from trainmaster.policies.registry import create
from trainmaster.sim.options import Options
from trainmaster.sim.run import Setup, run

POLICIES = "fifo(backfill=easy),srtf,srsf,las,gittins,priority,drf,timeslice"
MEASURED = ("cpu_s", "wall_s", "decision_ms_mean", "decision_ms_p99", "peak_rss_mib")
FILES = ("events.jsonl", "jobs.csv", "report.html", "series.json", "summary.json")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs for four nodes, more than they can take."""
    path = tmp_path_factory.mktemp("trace") / "jobs.csv"
    tm.write_csv(tm.synthesize("helios-like", days=2, load=1.3, nodes=4, seed=1), path)
    return path


def arguments(trace: Path, out: Path) -> list[str]:
    """Of `trainmaster`, called in the folder of the trace."""
    words = f"simulate {trace.name} --nodes 4 --gpus-per-node 8 --predictor noisy:0.5 --events".split()
    return [*words, "--policy", POLICIES, "--out", str(out)]


def simulate(trace: Path, out: Path, *more: str, hash_seed: str = "0") -> dict[str, str]:
    """What `trainmaster simulate` writes, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster", *arguments(trace, out), *more],
        cwd=trace.parent,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return contents(out)


def contents(folder: Path) -> dict[str, str]:
    """The files of a result folder by name, without what is measured about the program itself."""
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in FILES}
    summary = json.loads(texts["summary.json"])
    for entry in summary["runs"]:
        for name in MEASURED:
            assert entry[name] > 0
            entry[name] = None
    texts["summary.json"] = json.dumps(summary)
    return texts


@pytest.fixture(scope="module")
def files(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is compared with: hash seed 0, one process."""
    return simulate(trace, tmp_path_factory.mktemp("plain") / "out")


@pytest.mark.parametrize("hash_seed", ["1", "random"])
def test_the_hash_seed_does_not_matter(
    trace: Path, files: dict[str, str], tmp_path: Path, hash_seed: str
) -> None:
    assert simulate(trace, tmp_path / "out", hash_seed=hash_seed) == files


def test_the_number_of_processes_does_not_matter(trace: Path, files: dict[str, str], tmp_path: Path) -> None:
    assert simulate(trace, tmp_path / "out", "--jobs", "2") == files


def test_the_files_say_something(files: dict[str, str]) -> None:
    """Equal files would prove nothing if they were empty."""
    runs = json.loads(files["summary.json"])["runs"]
    assert len(runs) == len(POLICIES.split(","))
    assert sum(run["preemptions"] > 0 for run in runs) >= 5, "a loaded cluster"
    assert len({run["mean_jct_s"] for run in runs}) == len(runs), "the policies differ"
    assert all(f'<th scope="row">{policy}' in files["report.html"] for policy in POLICIES.split(","))
    assert files["events.jsonl"].count("\n") > 1_000


def test_another_seed_is_another_result(trace: Path, files: dict[str, str], tmp_path: Path) -> None:
    other = simulate(trace, tmp_path / "out", "--seed", "1")
    assert other["jobs.csv"] != files["jobs.csv"]


def test_twice_in_one_process(
    trace: Path, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stays behind in a process: both times are as in a process of its own."""
    monkeypatch.chdir(trace.parent)
    for name in ("first", "second"):
        words = arguments(trace, tmp_path / name)
        monkeypatch.setattr(sys, "argv", ["trainmaster", *words])  # the command is part of the record
        done = CliRunner().invoke(build(), words)
        assert done.exit_code == 0, done.output
        assert contents(tmp_path / name) == files


# -- two at the same time --------------------------------------------------------------------------


def instants(setup: Setup, turns: Iterator[None] | None = None) -> list[str]:
    """Every instant of a simulation as text; `turns` is advanced after each."""
    found: list[str] = []

    def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        found.append(f"{now} {[str(event) for event in events]} {actions}")
        if turns is not None:
            next(turns)

    run(setup, create(setup.policy), watch=watch)
    return found


def setup_of(policy: str, seed: int, predictor: str) -> Setup:
    trace = tm.synthesize("helios-like", days=1.5, load=1.3, nodes=2, seed=seed)
    durations = [truth.duration or 0 for truth in trace.truths]
    return Setup(
        trace.jobs, durations, tm.Cluster.homogeneous(2, 8), policy, Options(predictor=predictor), seed
    )


def interleaved(setups: Sequence[Setup]) -> list[list[str]]:
    """Both simulations in this process, in turns: one instant of the one, one of the other."""
    mine = [threading.Semaphore(1), threading.Semaphore(0)]
    found: list[list[str]] = [[], []]
    finished, crossings = [False, False], [0, 0]

    def turns(number: int) -> Iterator[None]:
        while True:
            if not finished[1 - number]:
                crossings[number] += 1
                mine[1 - number].release()
                assert mine[number].acquire(timeout=60)
            yield

    def work(number: int) -> None:
        assert mine[number].acquire(timeout=60)
        found[number] = instants(setups[number], turns(number))
        finished[number] = True
        mine[1 - number].release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert min(crossings) > 100, "they did alternate"
    return found


@pytest.mark.parametrize(
    "pair",
    [
        [("las", 1, "history"), ("las", 2, "history")],
        [("srtf", 1, "noisy:1"), ("srtf", 1, "noisy:1")],
        [("gittins", 1, "history"), ("drf", 2, "declared")],
        [("timeslice", 3, "history"), ("fifo(backfill=easy)", 4, "history")],
    ],
    ids=lambda pair: " and ".join(policy for policy, _, _ in pair),
)
def test_two_simulators_do_not_influence_each_other(pair: list[tuple[str, int, str]]) -> None:
    alone = [instants(setup_of(*one)) for one in pair]
    assert interleaved([setup_of(*one) for one in pair]) == alone
