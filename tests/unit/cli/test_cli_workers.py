"""Worker processes of `simulate --jobs 2`, seen from outside: signals, deaths, and what policies print."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

WEEK = "job_id,submit_s,duration_s,num_gpus\na,0,100,8\nb,0,100,8\n"
LIMIT_S = 60
"""Nothing here takes a second; whatever hangs is a failure."""

POLICIES = """
import os, signal
from pathlib import Path
import trainmaster as tm

HERE = Path(__file__).parent

class First(tm.Policy):
    name = "first"
    def plan(self, view):
        (HERE / "meeting").read_text()  # waits for the other
        signal.pause()

class Second(tm.Policy):
    name = "second"
    def plan(self, view):
        (HERE / "meeting").write_text("")  # waits for the other
        (HERE / "seen").write_text(str(len(list((HERE / "spool").glob("*/*.jsonl")))))
        os.kill({target}, {number})
        signal.pause()
"""

AT_FORK = """
import os, signal, sys
from trainmaster.cli import main

real, forks, parent = os.fork, [], os.getpid()

def fork():
    forks.append(1)
    child = real()
    if len(forks) == {fork}:
        os.kill(parent if child else os.getpid(), {number})
    return child

os.fork = fork
sys.argv[0] = "trainmaster"
main()
"""

SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


@dataclass
class Call:
    """A call of `simulate` with two workers, event logs and an output folder."""

    folder: Path

    def __call__(self, *python: str, policies: str) -> subprocess.CompletedProcess[str]:
        """Ends only when every process that has its stderr is gone: a worker left behind is a time-out."""
        (self.folder / "spool").mkdir()
        (self.folder / "week.csv").write_text(WEEK)
        options = f"--nodes 1 --gpus-per-node 8 --jobs 2 --events --policy {policies} --out {self.folder}/out"
        return subprocess.run(
            [sys.executable, *python, "simulate", f"{self.folder}/week.csv", *options.split()],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "TMPDIR": f"{self.folder}/spool"},
        )

    def in_the_middle(self, target: str, number: int) -> subprocess.CompletedProcess[str]:
        """A signal when both workers are at their runs."""
        os.mkfifo(self.folder / "meeting")
        file = self.folder / "mine.py"
        file.write_text(POLICIES.format(target=target, number=int(number)))
        done = self("-m", "trainmaster", policies=f"{file}:First,{file}:Second")
        assert (self.folder / "seen").read_text() == "2", "both had begun their event logs"
        return done

    def left_nothing(self) -> bool:
        return not (self.folder / "out").exists() and list((self.folder / "spool").iterdir()) == []


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


def answer(number: int) -> tuple[int, str]:
    if number == signal.SIGINT:
        return 130, "trainmaster: interrupted\n"
    return 128 + number, "trainmaster: terminated\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_middle_leaves_no_worker_and_no_file(call: Call, number: signal.Signals) -> None:
    done = call.in_the_middle("os.getppid()", number)
    assert (done.returncode, done.stderr) == answer(number)
    assert call.left_nothing()


@pytest.mark.parametrize("fork", [1, 2])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_workers_start_leaves_none(call: Call, number: signal.Signals, fork: int) -> None:
    done = call("-c", AT_FORK.format(fork=fork, number=int(number)), policies="fifo,las")
    assert (done.returncode, done.stderr) == answer(number)
    assert call.left_nothing()


def test_a_killed_worker_is_one_line(call: Call) -> None:
    done = call.in_the_middle("os.getpid()", signal.SIGKILL)
    message = "trainmaster: a worker process was killed, perhaps for memory (use fewer --jobs)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert call.left_nothing()


def test_a_run_under_nohup_outlives_the_terminal(call: Call) -> None:
    nohup = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    done = call("-c", nohup + AT_FORK.format(fork=1, number=int(signal.SIGHUP)), policies="fifo,las")
    assert done.returncode == 0, done.stderr
    assert (call.folder / "out" / "summary.json").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_policy_prints_is_no_output(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "week.csv").write_text(WEEK)
    file = tmp_path / "mine.py"
    file.write_text(
        "from trainmaster.policies.fifo import Fifo\nprint('loading')\n"
        "class Mine(Fifo):\n    name = 'mine'\n"
        "    def plan(self, view):\n        print('planning')\n        return super().plan(view)\n"
    )
    words = ["simulate", f"{tmp_path}/week.csv", "--nodes", "1", "--gpus-per-node", "8", "--jobs", jobs]
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster", *words, "--policy", f"{file},fifo", "--json"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [run["finished"] for run in json.loads(done.stdout)["runs"]] == [2, 2]
    assert {"loading", "planning"} <= set(done.stderr.splitlines())
