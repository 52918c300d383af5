"""Philly: attempts, missing times, the night when clocks change, the machine list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmaster.model.errors import InputError
from trainmaster.model.units import HOUR, SECOND
from trainmaster.traces import Trace, load_trace
from trainmaster.traces.readers.philly import machine_gpus

MINUTE = 60 * SECOND


def attempt(start: str | None, end: str | None, **machines: list[str]) -> dict[str, Any]:
    detail = [{"ip": name, "gpus": gpus} for name, gpus in (machines or {"m1": ["gpu0"]}).items()]
    return {"start_time": start, "end_time": end, "detail": detail}


def record(job_id: str, submitted: str, *attempts: dict[str, Any], status: str = "Pass") -> dict[str, Any]:
    return {
        "status": status,
        "vc": "11cb48",
        "jobid": job_id,
        "user": "u",
        "submitted_time": submitted,
        "attempts": list(attempts),
    }


def load(folder: Path, *records: Any, machines: str | None = None, strict: bool = False) -> Trace:
    path = folder / "cluster_job_log"
    path.write_text(json.dumps(records))
    if machines is not None:
        (folder / "cluster_machine_list").write_text(machines)
    return load_trace(path, strict=strict)


def test_a_night_without_change_of_clocks_is_plain(tmp_path: Path) -> None:
    trace = load(
        tmp_path, record("a", "2017-10-07 00:00:00", attempt("2017-10-07 00:30:00", "2017-10-07 03:30:00"))
    )
    assert trace.truths[0].duration == 3 * HOUR
    assert trace.problems.noted == {}
    assert trace.origin == "2017-10-07 07:00:00 UTC"


def test_the_night_when_daylight_saving_ends_has_an_hour_more(tmp_path: Path) -> None:
    trace = load(
        tmp_path, record("a", "2017-11-05 00:00:00", attempt("2017-11-05 00:30:00", "2017-11-05 02:00:00"))
    )
    assert trace.truths[0].duration == 2.5 * HOUR
    assert trace.problems.noted == {}


def test_a_time_that_exists_twice_is_the_first_and_noted(tmp_path: Path) -> None:
    trace = load(
        tmp_path, record("a", "2017-11-05 01:10:00", attempt("2017-11-05 01:20:00", "2017-11-05 02:20:00"))
    )
    assert trace.truths[0].queue == 10 * MINUTE
    assert trace.truths[0].duration == 2 * HOUR
    assert trace.problems.noted == {"ambiguous_time": 2}


def test_an_attempt_does_not_end_before_it_starts_because_clocks_change(tmp_path: Path) -> None:
    trace = load(
        tmp_path, record("a", "2017-11-05 01:10:00", attempt("2017-11-05 01:50:00", "2017-11-05 01:05:00"))
    )
    assert trace.truths[0].duration == 15 * MINUTE, "01:05 is the second one"


def test_an_attempt_that_ends_before_it_starts_is_at_fault(tmp_path: Path) -> None:
    trace = load(
        tmp_path, record("a", "2017-10-05 01:10:00", attempt("2017-10-05 01:50:00", "2017-10-05 01:05:00"))
    )
    assert trace.dropped == {"duration_not_positive": 1}


def test_attempts_add_up_without_the_waits_between(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        record(
            "a",
            "2017-10-07 00:00:00",
            attempt("2017-10-07 02:00:00", "2017-10-07 03:00:00", m1=["gpu0"]),
            attempt("2017-10-07 01:00:00", "2017-10-07 01:30:00", m1=["gpu0", "gpu1"], m2=["gpu0"]),
        ),
    )
    assert trace.truths[0].duration == 1.5 * HOUR
    assert trace.truths[0].queue == HOUR, "until the earliest start, in whatever order they are written"
    assert trace.jobs[0].request.gpus == 3000, "the most that one attempt used"


@pytest.mark.parametrize("absent", [None, "None", ""])
def test_attempts_without_a_time_are_left_out_and_noted(tmp_path: Path, absent: str | None) -> None:
    whole = attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00")
    trace = load(
        tmp_path,
        record("kept", "2017-10-07 00:00:00", whole, attempt("2017-10-07 03:00:00", absent), status="Killed"),
        record("lost", "2017-10-07 00:00:00", attempt(absent, "2017-10-07 03:00:00")),
        record("never", "2017-10-07 00:00:00"),
    )
    assert [job.id for job in trace.jobs] == ["kept"]
    assert (trace.truths[0].duration, trace.truths[0].status) == (HOUR, "cancelled")
    assert trace.dropped == {"duration_missing": 1, "no_attempts": 1}
    assert trace.problems.noted == {"attempt_time_missing": 2}


def test_records_at_fault(tmp_path: Path) -> None:
    good = attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00")
    trace = load(
        tmp_path,
        17,
        record("", "2017-10-07 00:00:00", good),
        record("a", "yesterday", good),
        record("b", "", good),
        record("c", "2017-10-07 00:00:00", {"start_time": 5, "end_time": [], "detail": None}),
        record("d", "2017-10-07 00:00:00", {**good, "detail": [{"ip": "m1", "gpus": []}]}),
        record("e", "2017-10-07 00:00:00", good),
        record("e", "2017-10-07 00:00:00", good),
    )
    assert [job.id for job in trace.jobs] == ["e"]
    assert trace.dropped == {
        "duplicate_id": 1,
        "id_missing": 1,
        "record_invalid": 1,
        "submit_invalid": 1,
        "submit_missing": 1,
        "time_invalid": 1,
        "zero_gpus": 1,
    }
    assert trace.problems.rows == 8


def test_strict_names_the_record(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, record("a", "2017-10-07 00:00:00"), strict=True)
    assert str(caught.value) == (
        f"{tmp_path / 'cluster_job_log'}, row 1, column attempts: job 'a' was never started"
    )


EIGHT = [f"gpu{index}" for index in range(8)]


def test_a_machine_list_that_contradicts_the_log_is_reported_and_the_log_believed(tmp_path: Path) -> None:
    records = [
        record("a", "2017-10-07 00:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", m51=EIGHT)),
        record(
            "b", "2017-10-07 00:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", m51=["gpu1"])
        ),
        record(
            "c", "2017-10-07 00:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", m51=["gpu2"])
        ),
        record("d", "2017-10-07 00:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", m99=EIGHT)),
    ]
    trace = load(
        tmp_path, *records, machines="machineId,number of GPUs, single GPU mem\nm51,2, 12GB\nm7,4, 24GB\n"
    )
    assert [job.request.gpus for job in trace.jobs] == [8000, 1000, 1000, 8000]
    assert trace.dropped == {}
    assert trace.problems.noted == {"machine_list_contradiction": 2}, "rows a and c; gpu2 is a third GPU"
    assert trace.problems.examples[0].message == ("m51 has 2 GPUs by the machine list, job 'a' used 8 of it")
    log = tmp_path / "cluster_job_log"
    assert machine_gpus(log) == {"m51": 2, "m7": 4}
    assert machine_gpus(log, trust="larger") == {"m51": 8, "m7": 4, "m99": 8}


def test_no_machine_list_no_comparison(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        record("a", "2017-10-07 00:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", m51=EIGHT)),
    )
    assert trace.problems.noted == {}
    with pytest.raises(InputError, match="there is no machine list beside it"):
        machine_gpus(tmp_path / "cluster_job_log")
    with pytest.raises(InputError, match="trust is 'log'"):
        machine_gpus(tmp_path / "cluster_job_log", trust="log")


def test_a_machine_list_at_fault_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, record("a", "2017-10-07 00:00:00"), machines="m51,2, 12GB\nm52,two, 12GB\n")
    assert str(caught.value) == (
        f"{tmp_path / 'cluster_machine_list'}, row 2, column number of GPUs: 'two' is not a finite number"
    )
