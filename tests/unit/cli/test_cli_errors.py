"""What goes wrong is one line on stderr and an exit code: 2 for the user's, 1 for the work's."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.cli import main
from trainmaster.policies.registry import BUILT_IN

TRACE = "job_id,submit_s,duration_s,num_gpus,tenant,user\na,0,100,4,x,u\nb,5,10,2,y,v\nc,6,3,0,y,v\n"
CLUSTER = ("--nodes", "1", "--gpus-per-node", "4")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "week.csv").write_text(TRACE)
    monkeypatch.chdir(tmp_path)
    return "week.csv"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the program; returns (exit code, stdout, stderr)."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainmaster", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return int(stop.value.code or 0), output.out, output.err

    return run


def one_line(err: str) -> str:
    """The only line of an error."""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err[:-1]


class TestSimulate:
    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("none.csv", *CLUSTER), "trainmaster: none.csv: "),
            ((".", *CLUSTER), "trainmaster: .: "),
            (
                ("week.csv",),
                "trainmaster: the cluster is not given (--nodes N --gpus-per-node G, or --cluster",
            ),
            (("week.csv", "--nodes", "2"), "trainmaster: the cluster is not given"),
            (("week.csv", "--cluster", "none.yaml"), "trainmaster: none.yaml: can't be read: No such file"),
            (
                ("week.csv", *CLUSTER, "--cluster", "c.yaml"),
                "trainmaster: --cluster and --nodes exclude each other",
            ),
            (
                ("week.csv", "--nodes", "2,2", "--gpus-per-node", "4"),
                "trainmaster: --nodes 2,2: a number stands twice",
            ),
            (("week.csv", "--nodes", "2,,3", "--gpus-per-node", "4"), "trainmaster: --nodes 2,,3: expected"),
            (("week.csv", "--nodes", "²", "--gpus-per-node", "4"), "trainmaster: --nodes ²: expected"),
            (("week.csv", *CLUSTER, "--strict"), "trainmaster: week.csv, row 4, column num_gpus: "),
            (("week.csv", *CLUSTER, "--from", "1e9"), "trainmaster: "),
            (
                ("week.csv", *CLUSTER, "--set", "placement.relax=soon"),
                "trainmaster: placement.relax=soon: not a number",
            ),
            (("week.csv", *CLUSTER, "--set", "placement.relax=-1"), "trainmaster: placement.relax is -1.0"),
            (
                ("week.csv", *CLUSTER, "--set", "placement.loose=1"),
                "trainmaster: placement has no knob 'loose'",
            ),
            (
                ("week.csv", *CLUSTER, "--set", "*.quantum_s=1", "--policy", "fifo"),
                "trainmaster: no simulated policy",
            ),
            (
                ("week.csv", *CLUSTER, "--policy", "timeslice(quantum_s=inf)"),
                "trainmaster: knob timeslice.quantum_s",
            ),
            (("week.csv", *CLUSTER, "--policy", "none.py"), "trainmaster: none.py: no such file"),
            (("week.csv", *CLUSTER, "--checkpoint-interval", "0"), "trainmaster: checkpoint_interval_s is 0"),
            (("week.csv", "--nodes", "1", "--gpus-per-node", "1"), "trainmaster: week.csv: no job is left"),
            (("week.csv", *CLUSTER, "--profile", "none.json"), "trainmaster: none.json: "),
            ((), "trainmaster simulate: Missing argument 'TRACE'"),
            (
                ("week.csv", *CLUSTER, "--nodes"),
                "trainmaster: Option '--nodes' requires an argument",
            ),
        ],
    )
    def test_bad_usage_and_bad_input(self, call: Any, trace: str, words: tuple[str, ...], what: str) -> None:
        code, out, err = call("simulate", *words)
        assert (code, out) == (2, "")
        assert one_line(err).startswith(what)

    def test_a_policy_that_plans_the_impossible(self, call: Any, trace: str, tmp_path: Path) -> None:
        (tmp_path / "bad.py").write_text(
            "from trainmaster.model.allocation import Allocation, Share\n"
            "from trainmaster.policies import Policy\n"
            "class Bad(Policy):\n    '''Bad.'''\n    name = 'bad'\n"
            "    def plan(self, view):\n        for members in view.pending_classes:\n"
            "            view.start(members.head(), Allocation.of([Share(9, 15, 4000)]))\n"
        )
        code, out, err = call("simulate", trace, *CLUSTER, "--policy", "bad.py")
        assert (code, out) == (1, "")
        assert one_line(err) == "trainmaster: policy bad: job a: there is no node 9"

    def test_a_full_disk(
        self, call: Any, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("trainmaster.sim.eventlog.EventLog._write", full)
            code, _, err = call("simulate", trace, *CLUSTER, "--events", "--out", "out")
        assert code == 1
        assert "No space left on device" in one_line(err)
        monkeypatch.setattr("trainmaster.sim.result.Result._write_jobs", full)
        code, _, err = call("simulate", trace, *CLUSTER, "--out", "out")
        assert (code, one_line(err)) == (
            1,
            "trainmaster: out: can't be written: No space left on device; nothing was changed",
        )
        assert not (tmp_path / "out").exists()

    def test_a_failed_run_leaves_the_earlier_result(self, call: Any, trace: str, tmp_path: Path) -> None:
        assert call("simulate", trace, *CLUSTER, "--out", "out")[0] == 0
        before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        assert call("simulate", trace, *CLUSTER, "--out", "out", "--policy", "fifo,strf")[0] == 2
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before

    def test_rows_at_fault_are_counted_and_no_error(self, call: Any, trace: str) -> None:
        code, out, err = call("simulate", trace, *CLUSTER, "--policy", "fifo")
        assert (code, out) == (0, "")
        assert "left out: 1 rows (1 zero gpus)" in err

    def test_jobs_that_never_finish_are_told(self, call: Any, trace: str, tmp_path: Path) -> None:
        (tmp_path / "f.csv").write_text("time_s,node,event\n1,0,down\n")
        code, _, err = call("simulate", trace, *CLUSTER, "--policy", "fifo", "--failures", "f.csv")
        assert code == 0
        assert "fifo: 2 jobs never finished" in err

    def test_json_is_all_of_stdout_even_with_a_folder(self, call: Any, trace: str) -> None:
        code, out, err = call("simulate", trace, *CLUSTER, "--policy", "fifo,las", "--json", "--out", "out")
        assert (code, err) == (0, "")
        document = json.loads(out)
        assert document["trace"]["dropped"] == {"zero_gpus": 1}
        assert json.loads(Path("out/summary.json").read_text())["runs"] == document["runs"]

    def test_knobs_on_the_command_line(self, call: Any, trace: str) -> None:
        words = ("--policy", "las,las(queues=5),fifo", "--set", "las.queues=3", "--set", "*.min_run_s=7")
        runs = json.loads(call("simulate", trace, *CLUSTER, *words, "--json")[1])["runs"]
        assert [run["knobs"].get("queues") for run in runs] == [3, 5, None]
        assert [run["knobs"].get("min_run_s") for run in runs] == [7.0, 7.0, None]

    def test_a_cluster_from_a_file_with_tenants(self, call: Any, trace: str, tmp_path: Path) -> None:
        (tmp_path / "c.yaml").write_text("nodes: [{count: 2, gpus: 4}]\ntenants: {x: 3}\n")
        document = json.loads(call("simulate", trace, "--cluster", "c.yaml", "--policy", "drf", "--json")[1])
        assert document["cluster"] == {"gpus": 8, "nodes": 2}
        (tmp_path / "c.yaml").write_text("nodes:\n- gpus: 4\n  - gpus: 5\n")
        code, _, err = call("simulate", trace, "--cluster", "c.yaml")
        assert code == 2
        assert one_line(err).startswith("trainmaster: c.yaml, row ")


class TestPolicies:
    def test_lists_all_and_each_in_one_json_document(self, call: Any) -> None:
        code, out, err = call("policies", "--json")
        assert (code, err) == (0, "")
        assert [entry["name"] for entry in json.loads(out)] == list(BUILT_IN)
        for name in BUILT_IN:
            entry = json.loads(call("policies", name, "--json")[1])
            assert entry["name"] == name and entry["summary"] and entry["source"]
            assert set(entry["parts"]) == {"ordering", "walk", "placement"}

    def test_one_that_there_is_not(self, call: Any) -> None:
        code, out, err = call("policies", "gitins")
        assert (code, out) == (2, "")
        assert one_line(err) == "trainmaster: unknown policy 'gitins' (did you mean 'gittins'?)"

    def test_text_goes_to_stderr_when_stdout_is_no_terminal(self, call: Any) -> None:
        code, out, err = call("policies")
        assert (code, out) == (0, "")
        assert all(name in err for name in BUILT_IN)


class TestUsage:
    @pytest.fixture
    def folder(self, call: Any, trace: str) -> str:
        assert call("simulate", trace, *CLUSTER, "--policy", "fifo,las", "--out", "out")[0] == 0
        return "out"

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("nowhere",), "trainmaster: nowhere/summary.json: can't be read: No such file"),
            (("out",), "trainmaster: out: 2 runs match (choose with --policy fifo or --policy las)"),
            (("out", "--policy", "drf"), "trainmaster: out: no run matches"),
            (("out", "--policy", "las", "--by", "node"), "trainmaster: --by node: unknown (tenant or user)"),
            (
                ("out", "--policy", "las", "--csv", "--json"),
                "trainmaster: --csv and --json exclude each other",
            ),
            (("out", "--policy", "las", "--from", "5"), "trainmaster: out/events.jsonl: can't be read"),
        ],
    )
    def test_errors(self, call: Any, folder: str, words: tuple[str, ...], what: str) -> None:
        code, out, err = call("usage", *words)
        assert (code, out) == (2, "")
        assert one_line(err).startswith(what)

    def test_files_at_fault(self, call: Any, folder: str) -> None:
        jobs = Path("out/jobs.csv")
        jobs.write_text(jobs.read_text().replace("held_s", "hold_s", 1))
        code, _, err = call("usage", "out", "--policy", "las")
        assert code == 2
        assert one_line(err).startswith("trainmaster: out/jobs.csv, row 1, column held_s: missing column")
        Path("out/summary.json").write_text('{"runs": [{}]}')
        code, _, err = call("usage", "out")
        assert code == 2
        assert one_line(err).startswith("trainmaster: out/summary.json: is not a summary")

    def test_table_and_json(self, call: Any, folder: str) -> None:
        code, out, err = call("usage", folder, "--policy", "fifo")
        assert (code, out) == (0, "")
        assert err.splitlines()[0].split() == ["tenant", "jobs", "GPU-hours", "share"]
        document = json.loads(call("usage", folder, "--policy", "fifo", "--by", "user", "--json")[1])
        assert document == [
            {"user": "u", "jobs": 1, "gpu_hours": 400 / 3600},
            {"user": "v", "jobs": 1, "gpu_hours": 20 / 3600},
        ]


def test_no_command_is_help_and_bad_usage(call: Any) -> None:
    code, out, err = call()
    assert code == 2
    assert "simulate" in out + err


def test_an_unknown_command(call: Any) -> None:
    code, out, err = call("simulat")
    assert (code, out) == (2, "")
    assert one_line(err).startswith("trainmaster: No such command 'simulat'")


@pytest.mark.parametrize("command", [(), ("simulate",), ("policies",), ("usage",), ("trace",)])
def test_every_command_has_help_with_an_example(call: Any, command: tuple[str, ...]) -> None:
    code, out, err = call(*command, "--help")
    assert (code, err) == (0, "")
    assert "Usage" in out
    assert command == ("trace",) or "Example" in out
