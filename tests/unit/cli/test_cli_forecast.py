"""`forecast`, and `simulate --snapshot-at`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import call

ROWS = [("a", 0, 100, 4), ("b", 10, 50, 4), ("c", 20, 30, 2), ("d", 30, 5, 2)]


@pytest.fixture
def saved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    """A state written by `simulate --snapshot-at`."""
    trace = tmp_path / "t.csv"
    rows = "\n".join(f"{name},{submit},{duration},{gpus},team" for name, submit, duration, gpus in ROWS)
    trace.write_text(f"job_id,submit_s,duration_s,num_gpus,tenant\n{rows}\n")
    words = (
        "--nodes",
        1,
        "--gpus-per-node",
        4,
        "--policy",
        "fifo",
        "--snapshot-at",
        40,
        "--snapshot-at",
        "1e3",
    )
    code, out, err = call(capsys, "simulate", trace, *words, "--out", tmp_path / "out")
    assert code == 0 and f"state: {tmp_path / 'out' / 'state-40.jsonl'}" in out + err
    return tmp_path / "out" / "state-40.jsonl"


def test_a_table(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "forecast", saved, "--draws", 4, "--submit", 2)
    text = out + err
    assert code == 0
    assert "3 jobs waiting at 40 s under fifo; 4 runs forward." in text
    assert "A new job of 2 GPUs would wait:" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("b ", "c ", "d "))]
    assert [row[:3] for row in rows] == [["b", "team", "4"], ["c", "team", "2"], ["d", "team", "2"]]
    assert "100 %" in text


def test_one_document(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "forecast", saved, "--draws", 2, "--json")
    document = json.loads(out)
    assert code == 0 and document["schema"] == 1
    assert [each["job"] for each in document["jobs"]] == ["b", "c", "d"]
    assert set(document["jobs"][0]) >= {
        "queue",
        "gpus",
        "waited_s",
        "start",
        "end",
        "share",
        "reason",
        "level",
    }
    assert document["jobs"][0]["level"], "why it waits is said with it"


def test_one_job(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "forecast", saved, "c", "--draws", 2)
    assert code == 0 and "1 job waiting" in out + err and "\nc stands behind b" in out + err
    code, _, err = call(capsys, "forecast", saved, "x")
    assert code == 2 and "no job 'x' waits in this state" in err


def test_when_nobody_waits(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "forecast", saved.with_name("state-1000.jsonl"))
    assert code == 0 and "Nobody waits at 1,000 s under fifo." in out + err


def test_what_is_no_state(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s\n")
    code, _, err = call(capsys, "forecast", tmp_path / "jobs.csv")
    assert code == 2 and "jobs.csv, row 1: is no JSON object (give a file that" in err


FAULTS = {
    ("--policy", "fifo", "--snapshot-at", "5"): "--snapshot-at writes files (say where with --out DIR)",
    ("--policy", "fifo,las", "--snapshot-at", "5", "--out", "o"): "states can be written of one run only",
    ("--policy", "fifo", "--snapshot-at", "-5", "--out", "o"): "snapshot at -5.0 s (give seconds from 0",
    ("--policy", "fifo", "--snapshot-at", "noon", "--out", "o"): "--snapshot-at noon: neither seconds nor",
}


@pytest.mark.parametrize("words", FAULTS)
def test_simulate_says_what_snapshots_need(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("job_id,submit_s,duration_s,num_gpus\na,0,10,1\n")
    more = [tmp_path / word if word == "o" else word for word in words]
    code, _, err = call(capsys, "simulate", trace, "--nodes", 1, "--gpus-per-node", 4, *more)
    assert code == 2 and FAULTS[words] in err
