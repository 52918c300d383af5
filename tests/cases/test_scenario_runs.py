"""The runner itself: it sees what goes wrong, and says so precisely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from case_helpers import ONE, scene_of

from trainmaster.testing import scenario
from trainmaster.testing.scenario import CaseResult, check_scene, load, run_case, summary

# -- expectations ------------------------------------------------------------------------------------

WRONG = """\
title: T
policies: priority
cluster: 2 x 2
queues: {red: {weight: 2}, blue: {}}
jobs:
  a: {gpus: 2, queue: red, runs: 200}
  b: {at: 5, gpus: 2, queue: blue, runs: 300}
  c: {at: 100, gpus: 2, queue: red, runs: 50, priority: 1}
expect:
  - at: 10
    pending: [a, b]
    partly: a
    nodes: {a: node-1}
    together: [a, b, c]
    apart: [a, c]
    gpus: {a: "> 2"}
    free: 1
    allocated: {red: 4}
    count: {running: 1}
    evictions: 1
  - {at: 100, free: {node-1: 2}, evictions: {a: 1}}
finally:
  running: a
  start: {a: 1, c: "< 100"}
  finish: {a: 7}
  jct: {c: ">= 51"}
  makespan: 1
  starts: [c, a]
  evicted: []
  evicted_queues: red
never:
  - {a: running, c: unsubmitted}
"""


def test_every_difference_is_told(tmp_path: Path) -> None:
    found = check_scene(scene_of(WRONG, tmp_path), "priority", "pack")
    assert found == [
        "at 0 s: a is running while c is unsubmitted, which must never be",
        "at 10 s (line 10): a is running, expected pending",
        "at 10 s (line 10): b is running, expected pending",
        "at 10 s (line 10): a is running with 2 GPUs, expected partly",
        "at 10 s (line 10): a sits on node-0, expected node-1",
        "at 10 s (line 10): b sits on node-1, a on node-0",
        "at 10 s (line 10): c sits on no node (unsubmitted), a on node-0",
        "at 10 s (line 10): c sits on no node (unsubmitted)",
        "at 10 s (line 10): a holds 2 GPUs, expected > 2 GPUs",
        "at 10 s (line 10): free are 0 GPUs, expected 1 GPUs",
        "at 10 s (line 10): queue red holds 2 GPUs, expected 4 GPUs",
        "at 10 s (line 10): jobs running: 2, expected 1",
        "at 10 s (line 10): evictions: 0, expected 1",
        "at 100 s (line 21): free on node-1 are 0 GPUs, expected 2 GPUs",
        "at 100 s (line 21): evictions of a: 0, expected 1",
        "at 100 s (line 21): evictions of b: 1, expected 0",
        "at the end (line 23): a is finished, expected running",
        "at the end (line 23): a started at 0 s, expected 1 s",
        "at the end (line 23): c started at 100 s, expected < 100 s",
        "at the end (line 23): a ended at 200 s, expected 7 s",
        "at the end (line 23): the JCT of c is 50 s, expected >= 51 s",
        "at the end (line 23): makespan: 355 s, expected 1 s",
        "at the end (line 23): started in the order a, c, expected c, a",
        "at the end (line 23): evicted in the order b, expected ",
        "at the end (line 23): evicted from the queues blue, expected red",
    ]


def test_an_instant_is_looked_at_once_all_of_it_has_happened(tmp_path: Path) -> None:
    text = ONE + "expect:\n- {at: 99.999999999, running: a}\n- {at: 100, finished: a, running: b}\n"
    assert (
        check_scene(scene_of(text + "- {at: 5000, ended: [a, b], free: 1}\n", tmp_path), "fifo", "pack") == []
    )


def test_what_passes_within_an_instant_is_no_situation(tmp_path: Path) -> None:
    """a is asked to stop, stops, and b starts: all at 100."""
    text = ONE.replace("at: 10,", "at: 100, priority: 1,").replace("a: {runs: 100}", "a: {runs: 300}")
    never = "never: [{a: stopping, b: pending}, {a: running, b: pending}]\n"
    assert check_scene(scene_of(text + never, tmp_path), "priority", "pack") == []


def test_the_last_instant_is_played(tmp_path: Path) -> None:
    text = ONE + "until: 100\nexpect: [{at: 100, finished: a, running: b}]\n"
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_a_moment_before_the_first_job(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 1\njobs: {a: {at: 50, runs: 1}}\n"
        "expect: [{at: 10, unsubmitted: a, free: 1}]\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_a_job_that_never_ends_is_a_difference_unless_the_case_says_so(tmp_path: Path) -> None:
    text = "title: T\ncluster: 1 x 1\njobs: {a: {runs: 1, gpus: 2}}\n"
    late = ["at the end: a never ended, and nothing more happens"]
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == late
    assert check_scene(scene_of(text + "finally: {pending: a}\n", tmp_path), "fifo", "pack") == []
    assert check_scene(scene_of(text + "until: 5\n", tmp_path), "fifo", "pack") == []
    wrong = check_scene(scene_of(text + "finally: {start: {a: 0}, jct: {a: 1}}\n", tmp_path), "fifo", "pack")
    assert wrong == [
        "at the end (line 4): a never started, expected 0 s",
        "at the end (line 4): a never ended, expected a JCT of 1 s",
        *late,
    ]


def test_withdrawing_what_has_ended_is_a_fault_of_the_case(tmp_path: Path) -> None:
    text = ONE + "steps: [{at: 100, cancel: a}]\n"
    assert (
        check_scene(scene_of(text, tmp_path), "fifo", "pack")[-1] == "a can't be cancelled at 100 s: finished"
    )


# -- settings that reach the engine ---------------------------------------------------------------


def test_estimates_and_limits_are_what_policies_see(tmp_path: Path) -> None:
    jobs = (
        "title: T\ncluster: 1 x 1\n"
        "jobs:\n  x: {runs: 5}\n  a: {runs: 10, KEY: 90}\n  b: {runs: 20, KEY: 30}\n"
    )
    order = "finally: {starts: [b, a]}\n"
    assert check_scene(scene_of(jobs.replace("KEY", "estimate") + order, tmp_path), "sjf", "pack") == []
    declared = jobs.replace("KEY", "limit") + "predictor: declared\n" + order
    assert check_scene(scene_of(declared, tmp_path), "sjf", "pack") == []
    wrong = check_scene(scene_of(jobs.replace("KEY", "limit") + order, tmp_path), "sjf", "pack")
    assert wrong == ["at the end (line 7): started in the order a, b, expected b, a"]


def test_weights_of_queues_reach_the_policy(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 4\nqueues: {red: {weight: 3}, blue: {}}\njobs:\n"
        "  r: {count: 4, queue: red, runs: 10}\n  b: {count: 4, queue: blue, runs: 10}\n"
        "expect: [{at: 0, allocated: {red: 3, blue: 1}}]\n"
    )
    assert check_scene(scene_of(text, tmp_path), "drf", "pack") == []


def test_speed_by_type_and_costs(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 1 B\njobs: {a: {runs: 100, speed: {B: 4}}}\ncosts: {start: 7}\n"
        "finally: {finish: {a: 32}}\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_relax_lets_a_gang_span_nodes(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 2 x 2\njobs:\n  l: {count: 2, runs: 100}\n"
        "  h: {count: 2, at: 1, gpus: 1, runs: 9}\n"
        "  g: {at: 2, gpus: 2, runs: 5}\nrelax: 3\nplacement: spread\nfinally: {start: {g: 10}}\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "spread") == []


# -- results -------------------------------------------------------------------------------------


def result_of(text: str, folder: Path) -> CaseResult:
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    return run_case(load(path))


def test_not_yet_is_never_passed(tmp_path: Path) -> None:
    late = result_of(ONE + "steps: [{at: 5, vanish: b}]\n", tmp_path)
    assert (late.status, late.needs, late.tried) == ("not yet", ["auditor"], 0)
    wrong = result_of(ONE + "policies: fifo\nexpect: [{at: 10, running: b, reason: {b: x}}]\n", tmp_path)
    assert wrong.status == "failed"
    good = result_of(ONE, tmp_path)
    assert summary([late, wrong, good]) == "1 of 3 passed; 1 failed; 1 not yet (auditor 1)"


def test_features_that_no_policy_has_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is there, so none is missing; but a policy with both is."""
    monkeypatch.setattr(scenario, "EVERY", ("fifo(backfill=easy)", "drf"))
    result = result_of(ONE + "needs: [fair-share, reservation]\n", tmp_path)
    assert (result.status, result.needs) == ("not yet", ["fair-share", "reservation"])
    assert result_of(ONE + "needs: reservation\n", tmp_path).status == "passed"


def test_a_reader_that_says_something_else(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: reader\nread: week.csv\nfiles:\n"
        "  week.csv: |\n    job_id,submit_s,duration_s,num_gpus\n"
        "    a,0,60,2\n    b,0,-1,2\n"
        "expect: {jobs: 2, gpus: {a: 1, z: 1}, runs: {a: 1h}, "
        "dropped: {zero_gpus: 1}, noted: {}, says: [sorry]}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    assert run.differences[:6] == (
        "jobs read: 1, expected 2",
        "a asks for 2 GPUs, expected 1 GPUs",
        "there is no job 'z'",
        "a runs for 60 s, expected 3600 s",
        "dropped as duration_not_positive: 1, expected 0",
        "dropped as zero_gpus: 0, expected 1",
    )
    assert run.differences[6].startswith("the reader doesn't say 'sorry', but ")
    (run,) = result_of(text.replace("num_gpus", "gpus!"), tmp_path).runs
    assert run.differences[0].startswith("week.csv") and len(run.differences) == 1


def test_a_command_that_differs_or_fails(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: process\nrun: trainmaster trace info nothing.csv\nfiles: {a.csv: x}\n"
        "environments: [{A: 1}, {A: 2}]\n"
        "expect: {same: [out.txt, stdout], contains: {stderr: [no such, file]}}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    assert len(run.differences) >= 3
    assert run.differences[0].startswith("run 1: exit code 2, expected 0 (trainmaster: nothing.csv")
    assert "out.txt is missing after run 1" in run.differences
    (run,) = result_of(text.replace("expect: {same: [out.txt, stdout],", "expect: {exit: 2,"), tmp_path).runs
    assert not any("exit code" in difference for difference in run.differences)


def test_bytes_that_differ(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: process\nrun: trainmaster --help\n"
        "environments: [{COLUMNS: 60}, {COLUMNS: 120}]\nexpect: {same: [stdout], contains: {stdout: case}}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    (difference,) = run.differences
    assert difference.startswith("stdout differs between run 1 and run 2, first in line ")


# -- the command -----------------------------------------------------------------------------------


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", "case", *words],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_prints_each_case_and_the_sum(tmp_path: Path) -> None:
    (tmp_path / "1-good.yaml").write_text("number: 1\n" + ONE)
    (tmp_path / "mine.yaml").write_text(ONE + "policies: fifo\nfinally: {start: {b: 10}}\n")
    (tmp_path / "9-later.yaml").write_text("number: 9\n" + ONE + "steps: [{at: 5, vanish: b}]\n")
    done = command(tmp_path, ".")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "   1  pass  T",
        "   9        T  not yet: needs auditor",
        "mine  FAIL  T",
        "            fifo, pack: at the end (line 7): b started at 100 s, expected 10 s",
        "",
        "1 of 3 passed; 1 failed; 1 not yet (auditor 1)",
    ]
    assert command(tmp_path, "1-good.yaml", "9-later.yaml").returncode == 0, "not yet is no failure"


def test_the_command_gives_json(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(ONE + "policies: fifo\nfinally: {start: {b: 10}}\n")
    done = command(tmp_path, "mine.yaml", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["summary"] == "0 of 1 passed; 1 failed"
    (case,) = document["cases"]
    assert (case["number"], case["status"], case["file"]) == (None, "failed", "mine.yaml")
    assert case["runs"][0]["policy"] == "fifo"
    assert case["runs"][0]["differences"] == ["at the end (line 7): b started at 100 s, expected 10 s"]


def test_the_command_tries_one_policy_where_it_claims_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ONE + "needs: preemption\n")
    (tmp_path / "b.yaml").write_text(ONE)
    done = command(tmp_path, ".", "--policy", "fifo", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert case["file"] == "b.yaml" and [run["policy"] for run in case["runs"]] == ["fifo"]
    refused = command(tmp_path, "a.yaml", "--policy", "fifo")
    assert refused.returncode == 2 and "no case is for policy fifo" in refused.stderr


def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("title: T\ncluster: 1 x 1\njobs: {a: {rums: 1}}\n")
    done = command(tmp_path, "bad.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "trainmaster: bad.yaml, row 3, column jobs.a.rums: unknown key 'rums' (did you mean 'runs'?)\n"
    )
