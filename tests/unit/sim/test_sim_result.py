"""Results in memory and in a folder: complete, exact, and all or nothing."""

from __future__ import annotations

import csv
import errno
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_helpers import trace_of

import trainmaster as tm
from trainmaster.model.errors import InputError, OutputError
from trainmaster.model.job import Deadline
from trainmaster.model.units import SECOND
from trainmaster.sim.options import Costs
from trainmaster.sim.result import FILES, JOB_COLUMNS, Result

ONE = tm.Cluster.homogeneous(1, 2)
FREE = Costs(0, 0, 0)


@pytest.fixture
def result() -> Result:
    """j0 0-100 on 2 GPUs, j1 (half a GPU, deadline 150) 100-110.5."""
    trace = trace_of((0, 100, 2), (5, 10.5, 0.5), tenant="t", user="u")
    trace.jobs[1] = type(trace.jobs[1])(
        "j1", 1, 5 * SECOND, trace.jobs[1].request, "t", "u", deadlines=(Deadline(150 * SECOND),)
    )
    return tm.simulate(trace, ONE, "fifo", costs=FREE, predictor="oracle", seed=3)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestInMemory:
    def test_jobs_are_a_table(self, result: Result) -> None:
        table = result.jobs
        assert table.dtype.names == JOB_COLUMNS
        assert table["job_id"].tolist() == ["j0", "j1"]
        assert table["finish_s"].tolist() == [100.0, 110.5]
        assert table["wait_s"].tolist() == [0.0, 95.0]
        assert (table["held_s"].tolist(), table["num_gpus"].tolist()) == ([100.0, 10.5], [2.0, 0.5])
        assert table["deadline_met"].tolist()[1] == 1.0
        assert math.isnan(table["deadline_s"][0])
        assert np.issubdtype(table["preemptions"].dtype, np.integer)
        assert set(table["mode"]) == {""}, "what does not apply is empty"
        assert np.isnan(table["samples"]).all()

    def test_jobs_that_never_started_have_no_times(self, tmp_path: Path) -> None:
        failures = tmp_path / "f.csv"
        failures.write_text("time_s,node,event\n0,0,down\n")
        table = tm.simulate(trace_of((5, 1, 1)), ONE, "fifo", failures=failures).jobs
        assert [math.isnan(table[name][0]) for name in ("first_start_s", "finish_s", "jct_s", "wait_s")]
        assert (table["status"][0], table["run_s"][0]) == ("unfinished", 0.0)

    def test_summary_is_of_the_only_run(self, result: Result) -> None:
        assert result.summary is result.runs[0]
        two = tm.simulate(trace_of((0, 1, 1)), ONE, "fifo,las")
        with pytest.raises(InputError, match=r"there are 2 runs \(use result\.runs\)"):
            _ = two.summary
        assert len(two.jobs) == 2

    def test_document_has_the_keys_that_users_rely_on(self, result: Result) -> None:
        document = result.document
        assert (document["schema"], document["trainmaster"], document["seed"]) == (1, tm.__version__, 3)
        assert document["cluster"] == {"gpus": 2, "nodes": 1}
        assert document["trace"]["path"] == "tiny.csv"
        assert document["trace"]["gpu_hours"] == (200 + 5.25) / 3600
        run = document["runs"][0]
        interface = """policy knobs predictor placement jobs finished mean_jct_s median_jct_s p90_jct_s
            p99_jct_s mean_wait_s mean_first_wait_s makespan_s utilization preemptions overhead_gpu_s
            lost_gpu_s slo_jobs slo_missed miss_rate weighted_miss_rate best_effort_mean_jct_s mean_run_s
            modes samples_done samples_planned metric_loss_mean metric_loss_worst tolerance_missed
            members_harmed gain guaranteed broken tenants fairness_loss ltgf_min ltgf_max_over_min jain
            sharing_loss_share decisions decision_ms_mean decision_ms_p99 fallbacks events cpu_s wall_s
            peak_rss_mib"""
        assert [name for name in interface.split() if name not in run] == []
        assert run["gain"] is None, "a figure that does not apply is null, never 0"
        json.dumps(document, allow_nan=False)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_need_their_extra(
        self, result: Result, library: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import sys

        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(InputError) as caught:
            getattr(result, f"to_{library}")()
        assert str(caught.value) == f"{library} is not installed (pip install 'trainmaster[{library}]')"

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_have_the_columns_of_jobs(
        self, result: Result, library: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import sys
        from types import SimpleNamespace

        stand_in = SimpleNamespace(DataFrame=lambda columns: list(columns))
        monkeypatch.setitem(sys.modules, library, stand_in)  # type: ignore[arg-type]
        assert getattr(result, f"to_{library}")() == list(JOB_COLUMNS)


class TestFolder:
    def test_files_hold_what_memory_holds(self, result: Result, tmp_path: Path) -> None:
        paths = result.write(tmp_path / "new" / "out")
        assert [path.name for path in paths] == ["summary.json", "jobs.csv", "series.json"]
        folder = tmp_path / "new" / "out"
        assert json.loads((folder / "summary.json").read_text()) == result.document
        with (folder / "jobs.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert tuple(rows[0]) == JOB_COLUMNS
        assert rows[1][:9] == ["fifo", "j0", "t", "2", "0", "0", "100", "100", "0"]
        assert rows[2][3:10] == ["0.5", "5", "100", "110.5", "105.5", "95", "10.5"]
        assert rows[2][12:14] == ["150", "1"]
        series = json.loads((folder / "series.json").read_text())
        assert [run["policy"] for run in series["runs"]] == ["fifo"]

    def test_an_earlier_result_is_replaced_and_other_files_stay(self, result: Result, tmp_path: Path) -> None:
        for name in FILES:
            (tmp_path / name).write_text("old")
        (tmp_path / "notes.txt").write_text("mine")
        result.write(tmp_path)
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == ["jobs.csv", "notes.txt", "series.json", "summary.json"]
        assert (tmp_path / "notes.txt").read_text() == "mine"

    def test_event_logs_are_joined_in_order(self, result: Result, tmp_path: Path) -> None:
        logs = [tmp_path / f"{number}.jsonl" for number in range(3)]
        for number, log in enumerate(logs):
            log.write_text(f'{{"run": {number}}}\n')
        result.write(tmp_path / "out", events=logs)
        lines = (tmp_path / "out" / "events.jsonl").read_text().splitlines()
        assert [json.loads(line)["run"] for line in lines] == [0, 1, 2]

    def test_a_report_that_fails_changes_nothing(self, result: Result, tmp_path: Path) -> None:
        out = tmp_path / "out"
        result.write(out)
        (out / "report.html").write_text("old")
        before = contents(out)

        def report(records: Path, path: Path) -> None:
            path.write_text("half")
            raise RuntimeError("no report today")

        with pytest.raises(RuntimeError, match="no report today"):
            result.write(out, report=report)
        assert contents(out) == before

    @pytest.mark.parametrize("written_before", range(3))
    def test_a_full_disk_changes_nothing(
        self, result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before: int
    ) -> None:
        out = tmp_path / "out"
        result.write(out)
        before = contents(out)
        left = written_before
        real = Path.open

        def full(path: Path, *how: Any, **more: Any) -> Any:
            nonlocal left
            if how and "w" in how[0]:
                if not left:
                    raise OSError(errno.ENOSPC, "No space left on device", str(path))
                left -= 1
            return real(path, *how, **more)

        monkeypatch.setattr(Path, "open", full)
        with pytest.raises(OutputError) as caught:
            result.write(out)
        monkeypatch.undo()
        message = f"{out}: can't be written: No space left on device; nothing was changed"
        assert str(caught.value) == message
        assert contents(out) == before

    def test_a_new_folder_that_cannot_be_filled_is_not_left_behind(
        self, result: Result, tmp_path: Path
    ) -> None:
        def report(records: Path, path: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.raises(OutputError, match="nothing was changed"):
            result.write(tmp_path / "out", report=report)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_the_way(self, result: Result, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("a file")
        with pytest.raises(OutputError, match=r"out: can't be written: .*\(choose another --out\)"):
            result.write(tmp_path / "out")
        assert (tmp_path / "out").read_text() == "a file"

    def test_names_that_are_no_unicode_text_are_written_all_the_same(self, tmp_path: Path) -> None:
        trace = trace_of((0, 5, 1))
        trace.jobs[0] = type(trace.jobs[0])("a\udc80b", 0, 0, trace.jobs[0].request, 'ü,\n"', "\ud800")
        for predictor in ("history", "noisy:0.5"):
            tm.simulate(trace, ONE, "srtf", predictor=predictor).write(tmp_path)
        with (tmp_path / "jobs.csv").open(newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file))
        assert (row["job_id"], row["tenant"], row["user"]) == ("a\\udc80b", 'ü,\n"', "\\ud800")


class TestEventLog:
    def test_tells_what_happened_in_order(self, tmp_path: Path) -> None:
        trace = trace_of((0, 100, 2), (10, 20, 2), tenant="t")
        tm.simulate(
            trace, ONE, "srtf(min_run_s=0)", predictor="oracle", costs=Costs(6, 24, 0), events=tmp_path
        )
        lines = [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()]
        found = [(line["t_ns"] // SECOND, line.get("event") or line["action"], line["job"]) for line in lines]
        assert found == [
            (0, "submitted", "j0"),
            (0, "start", "j0"),
            (0, "started", "j0"),
            (10, "submitted", "j1"),
            (10, "stop", "j0"),
            (16, "stopped", "j0"),
            (16, "checkpointwritten", "j0"),
            (16, "start", "j1"),
            (16, "started", "j1"),
            (36, "finished", "j1"),
            (36, "start", "j0"),
            (60, "started", "j0"),
            (150, "finished", "j0"),
        ]
        assert lines[0] == {"run": 0, "t_ns": 0, "event": "submitted", "job": "j0", "gpus": 2, "tenant": "t"}
        assert lines[1]["on"] == [["node-0", [0, 1]]]
        assert lines[6]["progress_ns"] == 10 * SECOND

    def test_failures_are_told_with_what_is_left(self, tmp_path: Path) -> None:
        failures = tmp_path / "f.csv"
        failures.write_text("time_s,node,event\n50,0,down\n60,0,up\n")
        costs = Costs(0, 0, 0, checkpoint_interval_s=40)
        tm.simulate(trace_of((0, 100, 1)), ONE, "fifo", failures=failures, costs=costs, events=tmp_path)
        lines = [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()]
        assert {"run": 0, "t_ns": 50 * SECOND, "event": "nodedown", "node": "node-0"} in lines
        lost = next(line for line in lines if line.get("event") == "lost")
        assert (lost["kept_ns"], lost["reason"]) == (40 * SECOND, "node failure")

    def test_a_pool_is_one_place(self, tmp_path: Path) -> None:
        tm.simulate(trace_of((0, 1, 1.5)), ONE, "fifo", placement="pool", events=tmp_path)
        start = json.loads((tmp_path / "0.jsonl").read_text().splitlines()[1])
        assert start["on"] == [["pool", []]]

    def test_one_that_cannot_be_written_is_an_output_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(OutputError, match=r"0\.jsonl: can't be written: No such file or directory"):
            tm.simulate(trace_of((0, 1, 1)), ONE, "fifo", events=tmp_path / "nowhere")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("trainmaster.sim.eventlog.EventLog._write", full)
        with pytest.raises(OutputError, match=r"0\.jsonl: can't be written: No space left on device"):
            tm.simulate(trace_of((0, 1, 1)), ONE, "fifo", events=tmp_path)
