"""State files: what stands in them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmaster.core.state import JobState
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.errors import InputError
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, Simulation, policy_of, run
from trainmaster.sim.snapshot import lines, parse, read_snapshot, write_snapshot
from trainmaster.testing.schedules import Case

ROWS = [("a", 0, 100, 4), ("b", 10, 50, 2), ("c", 20, 50, 4), ("d", 30, 50, 4), ("z", 500, 5, 1)]


def state(at: float = 40, policy: str = "fifo", **options: Any) -> list[str]:
    """Lines of a state: a and b run on two nodes of 4 GPUs, c and d wait."""
    case = Case.of(nodes=2, gpus_per_node=4, rows=ROWS)
    setup = Setup(case.jobs, case.durations, case.cluster, policy, Options(**options), 3)
    found: list[str] = []

    def keep(instant: int, simulation: Simulation, ledger: Ledger) -> None:
        found.extend(lines(instant, simulation, ledger, {"trace": "x.csv"}))

    run(setup, policy_of(policy, setup.options), snapshots=[round(at * 1e9)], keep=keep)
    return found


def changed(found: list[str], kind: str, number: int = 0, /, **values: Any) -> list[str]:
    """With other values in the line of a kind; None takes a key out."""
    rows = [row for row, line in enumerate(found) if json.loads(line)["kind"] == kind]
    entry = json.loads(found[rows[number]])
    for name, value in values.items():
        entry[name] = value
        if value is None:
            del entry[name]
    return [*found[: rows[number]], json.dumps(entry), *found[rows[number] + 1 :]]


def by_kind(found: list[str], kind: str) -> list[dict[str, Any]]:
    return [entry for entry in map(json.loads, found) if entry["kind"] == kind]


def test_a_state_reads_as_what_is_going_on() -> None:
    found = state()
    header = json.loads(found[0])
    assert (header["kind"], header["schema"], header["now"], header["policy"]) == (
        "state",
        1,
        40 * 10**9,
        "fifo",
    )
    assert header["seed"] == 3 and header["arrived"] == 4 and header["about"] == {"trace": "x.csv"}
    jobs = {entry["job"]["id"]: entry for entry in by_kind(found, "job")}
    assert {name: entry["phase"] for name, entry in jobs.items()} == {
        "a": "running",
        "b": "running",
        "c": "pending",
        "d": "pending",
    }
    assert jobs["a"]["on"] == [["node-0", [0, 1, 2, 3], 4000]]
    assert jobs["c"]["pending_since"] == 20 * 10**9
    works = {entry["job"]: entry["work"] / 1e9 for entry in by_kind(found, "process")}
    assert works == {"a": 100, "b": 50, "c": 50, "d": 50}
    assert [entry["job"] for entry in by_kind(found, "past")] == [{"id": name} for name in "abcd"]
    assert json.loads(found[-1]) == {"kind": "end", "lines": len(found)}
    assert "random" not in by_kind(found, "engine")[0], "nobody has used the random generator"


def test_jobs_of_the_past_tell_how_long_they_ran() -> None:
    past = {entry["job"]["id"]: entry for entry in by_kind(state(120), "past")}
    assert (past["b"]["ran"], past["b"]["ended"]) == (50 * 10**9, 60 * 10**9)
    assert "ran" not in past["d"]
    snapshot = parse(state(120))
    assert [(each.job.id, each.ran) for each in snapshot.past][:2] == [("a", 100 * 10**9), ("b", 50 * 10**9)]


def test_jobs_of_longer_ago_than_a_week_are_left_out() -> None:
    week = 7 * 86_400
    case = Case.of(rows=[("old", 0, 10, 1), ("new", 100, 10, 1), ("last", week + 50, 1, 1)])
    setup = Setup(case.jobs, case.durations, case.cluster, "fifo", Options())
    found: list[str] = []

    def keep(instant: int, simulation: Simulation, ledger: Ledger) -> None:
        found.extend(lines(instant, simulation, ledger))

    run(setup, policy_of("fifo", setup.options), snapshots=[(week + 60) * 10**9], keep=keep)
    assert [entry["job"]["id"] for entry in by_kind(found, "past")] == ["new", "last"]


def test_all_that_a_job_state_holds_is_saved() -> None:
    """A new attribute must be a number, or be saved in a way of its own."""
    from trainmaster.core import snapshot

    case = Case.of(rows=ROWS)
    fresh = JobState(case.jobs[0], 0)
    assert set(JobState.__slots__) >= snapshot.OWN
    odd = [name for name in snapshot.NUMBERS if not isinstance(getattr(fresh, name), int | float)]
    assert not odd, f"{odd} are no numbers: save them in core/snapshot.py"


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    simulation = parse(state()).restored()
    write_snapshot(tmp_path / "s.jsonl", 40 * 10**9, simulation)
    again = read_snapshot(tmp_path / "s.jsonl")
    assert again.path == str(tmp_path / "s.jsonl")
    assert again.options == Options(costs=Costs()) and again.now == 40 * 10**9
    assert [entry["job"]["id"] for entry in again.pending()] == ["c", "d"]


FAULTS: dict[str, tuple[list[str], str]] = {
    "empty": ([], "is empty (give a file that `simulate --snapshot-at` wrote)"),
    "text": (["job_id,submit_s"], "row 1: is no JSON object (give a file"),
    "another file": (['{"run": 0, "t_ns": 0}'], "row 1: is no line of a state (give a file"),
    "a list": (["[1]"], "row 1: is no line of a state"),
    "cut off": (state()[:-3], "is cut off after line"),
    "cut within a line": (
        [*state()[:5], state()[5][:10]],
        "row 6: is no JSON object (take the snapshot again)",
    ),
    "a line is gone": ([*state()[:6], *state()[7:]], "is cut off after line"),
    "two in one": ([*state(), *state()], "a line of kind state stands here"),
    "other version": (
        changed(state(), "state", schema=2),
        "row 1, column schema: is a state of version 2; this program reads version 1 (take the snapshot",
    ),
    "unknown kind": (changed(state(), "job", kind="jub"), "unknown kind 'jub' (did you mean 'job'?)"),
    "a key is gone": (changed(state(), "job", phase=None), "column phase: phase is missing"),
    "unknown field": (changed(state(), "job", jobs=1), "column jobs: 'jobs' is nothing that a job has"),
    "unknown field of the job": (
        changed(state(), "job", job={"id": "a", "gpu": 1}),
        "column gpu: a job has no field 'gpu'",
    ),
    "unknown phase": (
        changed(state(), "job", phase="runing"),
        "column phase: job a is 'runing' (one of pending",
    ),
    "ended": (changed(state(), "job", phase="finished"), "job a is finished, and no longer in the system"),
    "unknown node": (changed(state(), "job", on=[["node-9", [0], 4000]]), "there is no node 'node-9'"),
    "no allocation": (changed(state(), "job", on=[["node-0"]]), "column on: [['node-0']] names no GPUs"),
    "device used twice": (
        changed(state(), "job", 1, on=[["node-0", [0, 1], 2000]]),
        "column on: job b holds a GPU that another job holds (one of both can't hold it)",
    ),
    "larger than its allocation": (
        changed(state(), "job", on=[["node-0", [0, 1], 2000]]),
        "column on: job a asks 4 GPUs and holds 2 (a gang holds all of its GPUs or none)",
    ),
    "more devices than the node has": (
        changed(state(), "job", on=[["node-0", [0, 1, 2, 4], 4000]]),
        "are not 4 of its GPUs",
    ),
    "waits and holds": (changed(state(), "job", phase="pending"), "job a is pending and holds GPUs"),
    "twice": (changed(state(), "job", 1, job=by_kind(state(), "job")[0]["job"]), "job a stands twice"),
    "no class": (changed(state(), "job", 2, **{"class": None}), "column class: job c waits in no class"),
    "process of nobody": (changed(state(), "process", job="x"), "job x has no line (take a new snapshot)"),
    "orders of nobody": (
        changed(state(), "engine", running=["a", "b", "x"]),
        "job x is running and has no line",
    ),
    "not in the order": (
        changed(state(), "engine", running=["a"]),
        "the state contradicts itself: invariant broken: job b is in the running set",
    ),
    "unknown class": (changed(state(), "job", 2, **{"class": 99}), "the state can't be restored: IndexError"),
    "unknown policy": (
        changed(state(), "state", policy="fofi"),
        "unknown policy 'fofi' (did you mean 'fifo'?)",
    ),
    "unknown option": (
        changed(state(), "state", options={"costs": {}, "speed": 1}),
        "can't be read: TypeError",
    ),
    "no cluster": (changed(state(), "cluster", nodes=[]), "row 2: the cluster has no nodes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_line_and_the_mend(fault: str) -> None:
    found, message = FAULTS[fault]
    with pytest.raises(InputError) as raised:
        parse(found, "state.jsonl").restored()
    assert message in str(raised.value)
    if not message.startswith("unknown policy"):
        assert str(raised.value).startswith("state.jsonl")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read: No such file"):
        read_snapshot(tmp_path / "absent.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not text"):
        read_snapshot(tmp_path / "binary")
