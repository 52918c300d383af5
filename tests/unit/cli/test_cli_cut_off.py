"""`usage` adds up whole records only: a file that is cut off would give sums that are too small."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import call

# The tenant is called like a status, so that only the right column counts.
WEEK = "job_id,submit_s,duration_s,num_gpus,tenant\na,0,100,8,finished\nb,0,100,8,red\nc,5,50,4,red\n"


@pytest.fixture
def folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    week, out = tmp_path / "week.csv", tmp_path / "out"
    week.write_text(WEEK)
    words = ("--nodes", "1,2", "--gpus-per-node", 8, "--policy", "fifo,sjf", "--events", "--out", out)
    assert call(capsys, "simulate", week, *words)[0] == 0
    return out


CHOICE = ("--policy", "fifo", "--nodes", 1)


def test_whole_records_are_added_up(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert call(capsys, "usage", folder, *CHOICE)[0] == 0
    assert call(capsys, "usage", folder, *CHOICE, "--from", 0, "--to", 50)[0] == 0


@pytest.mark.parametrize("left", [-1, -40, 0.5, 0.2])
def test_jobs_cut_off(capsys: pytest.CaptureFixture[str], folder: Path, left: float) -> None:
    jobs = folder / "jobs.csv"
    data = jobs.read_bytes()
    jobs.write_bytes(data[: left if isinstance(left, int) else int(len(data) * left)])  # type: ignore[misc]
    code, out, err = call(capsys, "usage", folder, *CHOICE, "--csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{jobs}: holds" in err
    assert "of the 12 rows of summary.json (it is cut off or not of this run: simulate again)" in err


def test_rows_too_many(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    jobs = folder / "jobs.csv"
    jobs.write_text(jobs.read_text() + jobs.read_text().splitlines()[-1] + "\n")
    code, _, err = call(capsys, "usage", folder, *CHOICE)
    assert (code, "holds 13 of the 12 rows" in err) == (2, True)


def test_events_cut_off(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    log = folder / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    while '"event": "finished"' not in lines.pop():
        pass
    log.write_text("".join(lines))
    assert call(capsys, "usage", folder, *CHOICE)[0] == 0  # it isn't read
    for bound in (("--from", 0), ("--to", 50)):
        code, out, err = call(capsys, "usage", folder, *CHOICE, *bound, "--json")
        assert (code, out) == (2, "")
        assert f"{log}: tells of 11 of the 12 jobs that finished" in err
