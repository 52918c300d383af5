"""Dates on the command line: which traces have them, and what a date means on their clock."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainmaster.cli import main

CLUSTER = ("--nodes", "1", "--gpus-per-node", "4", "--policy", "fifo")
DAY = 86_400
START = 1_793_491_200
"""2026-11-01 00:00 UTC."""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Runs a command line in a folder of its own; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["trainmaster", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        output = capfd.readouterr()
        return int(stop.value.code or 0), output.out, output.err

    return run


def log(name: str, start: float) -> str:
    """Three jobs of 4 GPUs and an hour, one a day."""
    rows = "".join(f"{day},{start + day * DAY},3600,4,red\n" for day in range(3))
    Path(name).write_text(f"job_id,submit_s,duration_s,num_gpus,tenant\n{rows}")
    return name


def sacct(name: str) -> str:
    """The same from sacct, whose times are local and have no zone."""
    rows = "".join(f"{day}|ann|red|2026-11-0{day + 1}T08:00:00|3600|gres/gpu=4\n" for day in range(3))
    Path(name).write_text(f"JobID|User|Account|Submit|ElapsedRaw|AllocTRES\n{rows}")
    return name


def trace_of(call: Call, file: str, *words: object) -> dict[str, Any]:
    code, out, err = call("simulate", file, *CLUSTER, "--json", *words)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)["trace"]
    return found


def hours(call: Call, *words: object) -> list[tuple[str, float]]:
    code, out, err = call("usage", "out", "--csv", *words)
    assert code == 0, err
    return [(row["jobs"], float(row["gpu_hours"])) for row in csv.DictReader(io.StringIO(out))]


def test_a_log_of_seconds_since_1970(call: Call) -> None:
    trace = trace_of(call, log("log.csv", START), "--events", "--out", "out")
    clock = {key: trace[key] for key in ("clock", "start_s", "start_unix_s", "zone")}
    assert clock == {"clock": "unix", "start_s": START, "start_unix_s": START, "zone": "UTC"}
    assert hours(call, "--from", "2026-11-02", "--to", "2026-11-03") == [("1", 4.0)]
    assert hours(call, "--from", "2026-11-02T00:30", "--to", "2026-11-02T02:00+01:00") == [("1", 2.0)]
    assert hours(call, "--from", START, "--to", START + DAY) == [("1", 4.0)]
    assert hours(call) == [("3", 12.0)]
    assert trace_of(call, "log.csv", "--from", "2026-11-02")["jobs"] == 2
    assert call("trace", "convert", "log.csv", "part.csv", "--to", "2026-11-02T00:00:01")[0] == 0
    assert trace_of(call, "part.csv")["jobs"] == 2


def test_a_log_whose_first_job_is_moved_to_0(call: Call) -> None:
    trace = trace_of(call, sacct("log.txt"), "--events", "--out", "out")
    clock = {key: trace[key] for key in ("clock", "start_s", "start_unix_s", "zone")}
    eight = START + 8 * 3600
    assert clock == {"clock": "relative", "start_s": 0, "start_unix_s": eight, "zone": "local"}
    assert hours(call, "--from", "2026-11-02", "--to", "2026-11-02T08:30") == [("1", 2.0)]
    assert hours(call, "--to", "1800") == [("1", 2.0)]
    part = trace_of(call, "log.txt", "--from", "2026-11-02T08:00")
    assert (part["jobs"], part["start_s"], part["start_unix_s"]) == (2, DAY, eight + DAY)
    code, _, err = call("simulate", "log.txt", *CLUSTER)
    assert code == 0 and "clock: 0 s is 2026-11-01 08:00:00, in the time of the log" in err
    code, _, err = call("trace", "convert", "log.txt", "log.csv")
    assert code == 0 and "its dates are not kept: 0 s is 2026-11-01 08:00:00" in err
    _, _, err = call("trace", "info", "log.txt")
    assert "2.0 days from 2026-11-01 08:00:00 (second 0)" in err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("16.11.2026", "--from 16.11.2026: neither seconds nor a date (such as 86400, 2026-11-16 or 2026-11"),
        ("2026-11-16", "--from 2026-11-16 is a date, and this trace's clock has none (give seconds"),
    ],
)
def test_what_is_no_instant_of_the_clock(call: Call, text: str, what: str) -> None:
    assert call("simulate", log("log.csv", 0), *CLUSTER, "--events", "--out", "out")[0] == 0
    for words in (
        ("usage", "out"),
        ("simulate", "log.csv", *CLUSTER),
        ("trace", "convert", "log.csv", "part.csv"),
    ):
        code, _, err = call(*words, "--from", text)
        assert code == 2 and err.startswith(f"trainmaster: {what}") and err.count("\n") == 1


def test_a_zone_where_the_log_has_none(call: Call) -> None:
    code, _, err = call("simulate", sacct("log.txt"), *CLUSTER, "--from", "2026-11-02T08:00+01:00")
    assert code == 2 and "has a time zone, and the times of this trace have none (write the date" in err


@pytest.mark.parametrize("command", ["simulate", "convert"])
def test_a_span_without_jobs_says_which_there_are(call: Call, command: str) -> None:
    file = log("log.csv", START)
    words = ("simulate", file, *CLUSTER) if command == "simulate" else ("trace", "convert", file, "new.csv")
    code, _, err = call(*words, "--from", 0, "--to", DAY)
    assert code == 2 and not Path("new.csv").exists()
    assert err == (
        "trainmaster: log.csv: --from 0 --to 86400 leaves none of the 3 jobs (they are submitted from "
        "1793491200 s (2026-11-01 00:00:00 UTC) to 1793664000 s (2026-11-03 00:00:00 UTC))\n"
    )


def test_a_span_in_which_nobody_held_a_gpu_says_what_the_run_covers(call: Call) -> None:
    assert call("simulate", log("log.csv", START), *CLUSTER, "--events", "--out", "out")[0] == 0
    code, out, err = call("usage", "out", "--from", 0, "--to", DAY, "--csv")
    assert (code, out) == (0, "tenant,jobs,gpu_hours\n")
    assert err == (
        "nobody held a GPU in this span of time; the run goes from 1793491200 s (2026-11-01 00:00:00 UTC) "
        "to 1793667600 s (2026-11-03 01:00:00 UTC)\n"
    )


def test_a_run_is_chosen_by_the_options_that_differ(call: Call) -> None:
    words = ("--nodes", "1,2", "--gpus-per-node", "4", "--policy", "fifo,fifo(backfill=easy)")
    assert call("simulate", log("log.csv", 0), *words, "--out", "out")[0] == 0
    _, _, err = call("usage", "out", "--policy", "fifo")
    assert "2 runs match (choose with --nodes 1 or --nodes 2)" in err
    _, _, err = call("usage", "out", "--nodes", 2)
    assert "(choose with --policy fifo or --policy 'fifo(backfill=easy)')" in err
    _, _, err = call("usage", "out", "--nodes", 3)
    assert "no run matches (choose with --policy fifo --nodes 1 or --policy 'fifo(backfill=easy)' --n" in err
