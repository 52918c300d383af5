"""A run never replaces or removes what it reads."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import call

import trainmaster as tm

WEEK = "job_id,submit_s,duration_s,num_gpus\na,0,100,8\nb,0,100,8\n"
SMALL = ("--nodes", 1, "--gpus-per-node", 8)


def by_itself(source: Path, target: Path) -> Path:
    target.write_bytes(source.read_bytes())
    return target


def by_link(source: Path, target: Path) -> Path:
    target.symlink_to(source)
    return source


def by_hard_link(source: Path, target: Path) -> Path:
    os.link(source, target)
    return source


def through_a_link(source: Path, target: Path) -> Path:
    target.write_bytes(source.read_bytes())
    link = source.with_name(f"link-{source.name}")
    link.symlink_to(target)
    return link


WAYS = (by_itself, by_link, by_hard_link, through_a_link)
INPUTS = {
    "jobs.csv": WEEK,
    "events.jsonl": "time_s,node,event\n5,node-0,down\n9,node-0,up\n",
    "series.json": "nodes: [{count: 1, gpus: 8}]\n",
    "summary.json": "not read before it is refused",
}
WORDS = {"events.jsonl": "--failures", "series.json": "--cluster", "summary.json": "--profile"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", INPUTS)
def test_no_input_is_replaced(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, way: Callable[[Path, Path], Path]
) -> None:
    out = tmp_path / "inout"
    out.mkdir()
    source, week = tmp_path / "source", tmp_path / "week.csv"
    source.write_text(INPUTS[name])
    week.write_text(WEEK)
    given = way(source, out / name)
    more = () if name == "series.json" else SMALL
    words = (given, *more) if name == "jobs.csv" else (week, WORDS[name], given, *more)
    code, _, err = call(capsys, "simulate", *words, "--policy", "fifo", "--out", out)
    assert code == 2
    assert err.count("\n") == 1
    assert "is read by this run, and its results would replace it" in err
    assert "choose another --out" in err
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == INPUTS[name]


@pytest.mark.parametrize("option", ["--policy", "--format"])
def test_python_files_are_inputs(capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str) -> None:
    out, code = tmp_path / "out", tmp_path / "mine.py"
    out.mkdir()
    code.write_text("raise SystemExit('it ran')\n")
    os.link(code, out / "report.html")
    week = tmp_path / "week.csv"
    week.write_text(WEEK)
    word = f"fifo,{code}:Mine(size=1)" if option == "--policy" else f"{code}:Mine"
    done, _, err = call(capsys, "simulate", week, *SMALL, option, word, "--out", out)
    assert (done, "would replace it" in err) == (2, True)


def test_the_files_of_a_trace_that_is_a_folder_are_inputs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text(WEEK)
    code, _, err = call(capsys, "simulate", tmp_path, *SMALL, "--out", tmp_path)
    assert (code, "would replace it" in err) == (2, True)


def test_results_of_an_earlier_run_are_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    week = tmp_path / "week.csv"
    week.write_text(WEEK)
    for policy in ("fifo", "sjf"):
        code, _, _ = call(capsys, "simulate", week, *SMALL, "--policy", policy, "--out", tmp_path)
        assert code == 0
    assert week.read_text() == WEEK


def test_python_keeps_the_trace_too(tmp_path: Path) -> None:
    log = tmp_path / "jobs.csv"
    log.write_text(WEEK)
    result = tm.simulate(tm.load_trace(log), tm.Cluster.homogeneous(1, 8))
    with pytest.raises(tm.InputError, match="is read by this run"):
        result.write(tmp_path)
    assert log.read_text() == WEEK


def test_a_conversion_does_not_replace_its_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, link = tmp_path / "week.csv.gz", tmp_path / "link.csv"
    log.write_bytes(gzip.compress(WEEK.encode()))
    link.symlink_to(log)
    before = log.read_bytes()
    for out in (log, link):
        code, _, err = call(capsys, "trace", "convert", log, out, "--limit", 1)
        assert code == 2
        assert "is the trace itself" in err
        assert log.read_bytes() == before
