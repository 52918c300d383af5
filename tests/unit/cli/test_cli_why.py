"""`why`: reasons from a saved state, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import call

CLUSTER = """\
nodes:
  - {name: h, count: 3, gpus: 8, type: H100}
  - {name: v, count: 2, gpus: 4, type: V100}
queues:
  vision: {guaranteed: 16}
  speech: {guaranteed: 8}
  students: {limit: 4}
"""
JOBS = """\
job_id,submit_s,duration_s,num_gpus,tenant,gpu_type
a,0,7200,5,vision,H100
b,0,7200,5,vision,H100
c,0,5400,5,speech,H100
d,60,3600,3,students,V100
big,300,3600,16,vision,H100
e,600,7200,4,speech,H100
e2,600,7200,4,speech,H100
f,900,3600,2,students,V100
g,1000,600,1,students,V100
"""


@pytest.fixture
def state(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return saved(capsys, tmp_path, "standard", 1200)


def saved(capsys: pytest.CaptureFixture[str], folder: Path, policy: object, at: int) -> Path:
    words = ("--cluster", folder / "cluster.yaml", "--policy", policy, "--predictor", "oracle")
    out = folder / f"out-{at}"
    assert call(capsys, "simulate", folder / "jobs.csv", *words, "--snapshot-at", at, "--out", out)[0] == 0
    return out / f"state-{at}.jsonl"


def test_all_who_wait(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    code, out, err = call(capsys, "why", state)
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert lines[0] == "5 jobs wait for 27 GPUs at 1,200 s; 14 of 32 GPUs are free."
    assert "     2        8    10 min  fragmentation: enough GPUs are free, but scattered over nodes" in lines
    assert "[e and e2]" in err and "[f]" in err and max(map(len, lines)) <= 100
    levels = [line.split("  ")[-1].partition(":")[0] for line in lines[3:] if not line[:12].isspace()]
    assert levels[0] == "fragmentation"
    assert "it is 2nd in its queue" not in err, "what holds of one job alone is not in the table"


def test_one_job(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    code, out, err = call(capsys, "why", state, "g")
    assert (code, out) == (0, "")
    assert " ".join(err.split()) == (
        "g of students, 1 GPU, has waited 3.33 min. It stands behind f, which waits for 2 GPUs of type V100 "
        "on one node; queue students holds 3 GPUs and may hold 4 GPUs at most; it is 2nd in its queue. "
        "level order: it stands behind a job that has to start first "
        "helps It would start now if f were withdrawn."
    )
    helped = call(capsys, "why", state, "e")[2].splitlines()
    assert helped[-4:-1] == [
        "helps  It would start now if it asked 3 instead of 4 GPUs.",
        "       It would start now on any type of GPU.",
        "       It would start now if it accepted any nodes.",
    ]


def test_json(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    code, out, err = call(capsys, "why", state, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["now_s"], document["policy"]) == (1200.0, "standard")
    jobs = {job["job"]: job for job in document["jobs"]}
    assert {name: job["level"] for name, job in jobs.items()} == {
        "big": "quota",
        "e": "fragmentation",
        "e2": "fragmentation",
        "f": "limit",
        "g": "order",
    }
    code, out, err = call(capsys, "why", state, "f", "--json")
    one = json.loads(out)
    assert one["hints"][0]["numbers"] == {"asked_gpus": 2, "instead_gpus": 1} and one["untried"] is None
    assert {**jobs["f"], "hints": one["hints"]}.items() <= one.items()
    assert one["numbers"] == {"asked_gpus": 2, "queue_held_gpus": 3, "limit_gpus": 4}
    assert (one["tenant"], one["gpus"], one["pending_since_s"]) == ("students", 2, 900.0)


def test_it_never_starts_by_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path, state: Path) -> None:
    text = state.read_text()
    assert '"students"' in text
    changed = tmp_path / "changed.jsonl"
    changed.write_text(text.replace('"limit": 4000', '"limit": 1000'))
    err = call(capsys, "why", changed, "f")[2]
    assert "may never start: queue students may hold 1 GPUs at most; the job asks 2" in " ".join(err.split())
    assert "It waits for ever unless the job, its queue or the cluster is changed." in err


def test_nobody_waits(capsys: pytest.CaptureFixture[str], tmp_path: Path, state: Path) -> None:
    early = saved(capsys, tmp_path, "standard", 30)
    assert call(capsys, "why", early) == (0, "", "Nobody waits at 30 s.\n")


def test_what_is_asked_wrongly(capsys: pytest.CaptureFixture[str], tmp_path: Path, state: Path) -> None:
    for words, message in (
        ((state, "a"), "trainmaster: job a is running: only a job that waits has a reason to\n"),
        ((state, "bigg"), "trainmaster: there is no job 'bigg' (did you mean 'big'?)\n"),
        ((tmp_path / "none",), f"trainmaster: {tmp_path}/none: can't be read: No such file or directory\n"),
    ):
        assert call(capsys, "why", *words) == (2, "", message)
    assert call(capsys, "why", tmp_path / "jobs.csv")[0] == 2


MINE = '''
from trainmaster.policies import Policy


class Mine(Policy):
    """First in, first out; holds what can't be copied."""

    name = "mine"
    source = "this test"

    def compose(self):
        self.rows = (row for row in range(3))
'''


def test_hints_that_can_not_be_tried(capsys: pytest.CaptureFixture[str], tmp_path: Path, state: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MINE)
    path = saved(capsys, tmp_path, mine, 1100)
    code, _, err = call(capsys, "why", path, "e")
    assert code == 0 and "helps  could not be tried: policy mine: " in err and "generator" in err
    document = json.loads(call(capsys, "why", path, "e", "--json")[1])
    assert document["hints"] == [] and document["untried"].startswith("policy mine: ")
