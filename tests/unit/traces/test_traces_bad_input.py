"""What is wrong with a file or a row is told in one line: file, row, column, and the mend."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from trainmaster.model.errors import InputError, OutputError
from trainmaster.traces import load_trace, write_csv

GOOD = "job_id,submit_s,duration_s,num_gpus\na,0,10,1\nb,5,10,2\n"


def message(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        load_trace(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_truncated_gzip(write) -> None:
    path = write(gzip.compress(GOOD.encode() * 50)[:-9], "log.csv.gz")
    assert message(path) == f"{path}: the gzip data are cut off or damaged (fetch it again)"
    assert message(path, format="csv") == f"{path}: the gzip data are cut off or damaged (fetch it again)"


def test_gzip_cut_off_far_behind_the_head(write) -> None:
    rows = "".join(
        f"job{number},{number * 7919 % 10007},{number * 104729 % 9973 + 1},1\n" for number in range(9000)
    )
    packed = gzip.compress(b"job_id,submit_s,duration_s,num_gpus\n" + rows.encode())
    path = write(packed[: len(packed) * 9 // 10], "log.csv.gz")
    assert message(path) == f"{path}: the gzip data are cut off or damaged (fetch it again)"


def test_gzip_is_known_by_its_bytes_not_by_its_name(write) -> None:
    assert len(load_trace(write(gzip.compress(GOOD.encode()), "log.csv"))) == 2
    assert len(load_trace(write(GOOD, "log.csv.gz"))) == 2


def test_wrong_delimiter(write) -> None:
    path = write(GOOD.replace(",", ";"))
    mend = "columns must be separated by ',', this file uses ';'"
    assert message(path) == f"{path}, row 1: is of no known trace format ({mend})"
    assert message(path, format="csv") == f"{path}, row 1, column job_id: the column is missing ({mend})"
    tabs = write(GOOD.replace(",", "\t"))
    assert message(tabs).endswith("(columns must be separated by ',', this file uses a tab)")


def test_wrong_delimiter_of_any_table(write) -> None:
    helios = "job_id;vc;gpu_num;state;submit_time;duration\n"
    told = "columns must be separated by ',', this file uses ';'"
    path = write(helios)
    assert message(path) == f"{path}, row 1: is of no known trace format (for a helios trace {told})"
    assert message(path, format="helios") == (
        f"{path}, row 1, column job_id: the column is missing in this helios trace ({told})"
    )
    path = write("JobID,Submit,ReqTRES,Elapsed\n")
    assert message(path).endswith("(for a slurm trace columns must be separated by '|', this file uses ',')")


@pytest.mark.parametrize("column", ["job_id", "submit_s", "duration_s", "num_gpus"])
def test_every_needed_column_is_missed_by_name(write, column: str) -> None:
    names = [name for name in ("job_id", "submit_s", "duration_s", "num_gpus") if name != column]
    path = write(",".join(names) + "\n1,2,3\n")
    assert message(path).startswith(f"{path}, row 1, column {column}: the column is missing (found ")


def test_missing_column(write) -> None:
    path = write("job_id,submit_s,duration,num_gpus\na,0,1,1\n")
    mend = "found job_id, submit_s, duration, num_gpus; if it is 'duration': --columns duration_s=duration"
    assert message(path) == f"{path}, row 1, column duration_s: the column is missing ({mend})"
    path = write("job_id,gpu_num,submit_time\n", "cluster_log.csv")
    assert message(path, format="helios") == (
        f"{path}, row 1, column duration: the column is missing in this helios trace "
        "(found job_id, gpu_num, submit_time)"
    )


def test_column_twice(write) -> None:
    path = write("job_id,submit_s,submit_s,duration_s,num_gpus\n")
    assert message(path) == f"{path}, row 1, column submit_s: the column is there twice"


def test_empty_file(write) -> None:
    path = write("")
    assert message(path) == f"{path}: is empty (give a trace with a header and rows)"
    assert message(path, format="slurm") == f"{path}: is empty (give a trace with rows)"
    assert "is empty" in message(write(" \n\n"))
    assert "is empty" in message(write(gzip.compress(b"")))


def test_a_header_alone_is_a_trace_without_jobs(write) -> None:
    trace = load_trace(write(GOOD.split("\n")[0]))
    assert (len(trace), trace.dropped, trace.span_s, trace.gpu_hours) == (0, {}, 0.0, 0.0)


def test_a_folder(tmp_path: Path) -> None:
    assert (
        message(tmp_path)
        == f"{tmp_path}: is a folder in which no trace is recognized (give the file of the trace)"
    )
    assert message(tmp_path, format="csv") == f"{tmp_path}: is a folder (give the file of the csv trace)"
    assert "pai_job_table.csv is missing" in message(tmp_path, format="pai")


def test_absent_and_unreadable_file(tmp_path: Path, write) -> None:
    absent = tmp_path / "absent.csv"
    assert message(absent) == f"{absent}: cannot be read: No such file or directory"
    path = write(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert message(path) == f"{path}: cannot be read: Permission denied"


def test_not_text(write) -> None:
    path = write(b"\xff\xfe\x00job_id")
    assert message(path) == f"{path}: is not UTF-8 text (give a trace as text, plain or .gz)"
    path = write(b"PK\x03\x04\x00\x00\x00", "data.zip")
    assert message(path) == f"{path}: is not text (unpack the archive and give the trace inside)"


def test_unknown_format(write) -> None:
    path = write("colour,taste\nred,sweet\n")
    assert message(path).startswith(
        f"{path}, row 1: is of no known trace format (name it with --format (csv, philly,"
    )
    assert message(path, format="hellios") == "unknown trace format 'hellios' (did you mean 'helios'?)"


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        (
            "helios",
            "job_id,vc,gpu_num,state,submit_time,duration\n"
            "a,v,1,COMPLETED,2020-06-09 18:41:01,10\nb,v,1,COMPLETED,2020-06-09T18:41:01+08:00,10\n",
            3,
        ),
        (
            "acme",
            "job_id,gpu_num,type,state,submit_time,duration\n"
            "a,1,Eval,COMPLETED,2023-03-01 00:18:22+08:00,10\nb,1,Eval,COMPLETED,2023-03-01 00:18:22,10\n",
            3,
        ),
        (
            "slurm",
            "JobID|Submit|ReqTRES|ElapsedRaw\n1|2024-03-05T10:00:00|gres/gpu=1|5\n2|1709632800|gres/gpu=1|5\n",
            3,
        ),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_mixed_time_zones(write, name: str, text: str, row: int, strict: bool) -> None:
    path = write(text)
    found = message(path, strict=strict)
    assert found.startswith(f"{path}, row {row}, column ")
    assert found.endswith("(write all times of a file alike)")


def test_mixed_time_zones_say_what_differs(write) -> None:
    path = write(
        "job_id,gpu_num,type,state,submit_time,duration\n"
        "a,1,Eval,COMPLETED,2023-03-01 00:18:22+08:00,10\nb,1,Eval,COMPLETED,2023-03-01 00:18:22,10\n"
    )
    assert message(path) == (
        f"{path}, row 3, column submit_time: this time has no time zone, earlier ones have a time zone "
        "(write all times of a file alike)"
    )


def test_philly_that_is_not_json(write) -> None:
    path = write('[{"jobid": "a",\n', "cluster_job_log")
    assert message(path) == (
        f"{path}, row 2: is not JSON: Expecting property name enclosed in double quotes (fetch it again)"
    )
    assert message(write('{"jobid": 1}'), format="philly").endswith(
        "is not a JSON list of jobs (give cluster_job_log)"
    )
    assert "is not JSON" in message(write("[" * 100_000 + '"jobid"'), format="philly")


ROWS_AT_FAULT = [
    (
        "a,nan,10,1",
        "submit_invalid",
        "column submit_s: 'nan' is not a finite time (a number, such as 3600 or 0.5)",
    ),
    ("a,,10,1", "submit_invalid", "column submit_s: is empty (a number, such as 3600 or 0.5)"),
    ("a,-5,10,1", "submit_invalid", "column submit_s: job 'a' is submitted at -5 s (a time of at least 0)"),
    (
        "a,1e15,10,1",
        "submit_invalid",
        "column submit_s: '1e15' is not a finite time (a number, such as 3600 or 0.5)",
    ),
    ("a,0,0,1", "duration_not_positive", "column duration_s: job 'a' runs for 0 s (a duration above 0)"),
    (
        "a,0,-1.5,1",
        "duration_not_positive",
        "column duration_s: job 'a' runs for -1.5 s (a duration above 0)",
    ),
    (
        "a,0,inf,1",
        "duration_invalid",
        "column duration_s: 'inf' is not a finite time (a number, such as 3600 or 0.5)",
    ),
    (
        "a,0,,1",
        "duration_missing",
        "column duration_s: job 'a' has no duration, nor a model with a profile that gives one "
        "(a duration above 0)",
    ),
    ("a,0,10,0", "zero_gpus", "column num_gpus: job 'a' asks for 0 GPUs (leave out CPU-only jobs)"),
    ("a,0,,0", "zero_gpus", "column num_gpus: job 'a' asks for 0 GPUs (leave out CPU-only jobs)"),
    ("a,0,10,-2", "gpus_invalid", "column num_gpus: -2 GPUs (a number of GPUs, such as 8 or 0.5)"),
    ("a,0,10,1e12", "gpus_invalid", "column num_gpus: 1e12 GPUs (a number of GPUs, such as 8 or 0.5)"),
    ("a,0,10,many", "gpus_invalid", "column num_gpus: 'many' is not a finite number (a number)"),
    ("a,0,10,", "gpus_invalid", "column num_gpus: is empty (a number)"),
    (",0,10,1", "id_missing", "column job_id: is empty"),
    ("first,0,10,1", "duplicate_id", "column job_id: job 'first' was there before (unique ids)"),
    ("a,0,10", "field_count", "3 fields, the header has 4"),
    ("a,0,10,1,1", "field_count", "5 fields, the header has 4"),
]


@pytest.mark.parametrize(("row", "reason", "told"), ROWS_AT_FAULT)
def test_a_row_at_fault_is_dropped_and_counted(write, row: str, reason: str, told: str) -> None:
    path = write(f"job_id,submit_s,duration_s,num_gpus\nfirst,1,10,1\n{row}\nlast,2,10,1\n")
    trace = load_trace(path)
    assert [job.id for job in trace.jobs] == ["first", "last"]
    assert trace.dropped == {reason: 1}
    assert trace.problems.rows == 3
    assert trace.problems.examples[0].row == 3
    where = f"{path}, row 3, " if told.startswith("column") else f"{path}, row 3: "
    assert message(path, strict=True) == where + told


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("priority", "1.5", "priority_invalid"),
        ("requested_walltime_s", "0", "walltime_invalid"),
        ("min_gpus", "9", "min_gpus_invalid"),
        ("max_gpus", "7", "max_gpus_invalid"),
        ("min_gpus", "0", "min_gpus_invalid"),
        ("num_nodes", "0", "num_nodes_invalid"),
        ("preemptible", "maybe", "preemptible_invalid"),
        ("deadline_s", "soon", "deadline_invalid"),
        ("deadline_s", "-1", "deadline_invalid"),
        ("deadlines_s", "200-100", "deadline_invalid"),
        ("deadlines_s", "100-100", "deadline_invalid"),
        ("batch_size", "0", "batch_size_invalid"),
        ("iterations", "-1", "iterations_invalid"),
        ("iterations", "nan", "iterations_invalid"),
    ],
)
def test_optional_columns_at_fault(write, column: str, value: str, reason: str) -> None:
    path = write(f"job_id,submit_s,duration_s,num_gpus,{column}\na,0,10,8,{value}\nb,0,10,8,\n")
    trace = load_trace(path)
    assert trace.dropped == {reason: 1}
    assert [job.id for job in trace.jobs] == ["b"]


@pytest.mark.parametrize(("times", "values"), [("1-2", "5"), ("1", "5-4"), ("1-2", "4-5"), ("1-2", "5-x")])
def test_deadlines_and_values_must_match(write, times: str, values: str) -> None:
    path = write(
        f"job_id,submit_s,duration_s,num_gpus,deadlines_s,deadline_values\na,0,1,1,{times},{values}\n"
    )
    assert load_trace(path).dropped == {"deadline_invalid": 1}


def test_the_first_of_two_rows_with_one_id_stays_even_when_submitted_later(write) -> None:
    path = write("job_id,submit_s,duration_s,num_gpus\na,9,1,1\na,1,2,1\n")
    trace = load_trace(path)
    assert [(job.id, job.submit) for job in trace.jobs] == [("a", 9_000_000_000)]


def test_an_id_of_a_dropped_row_is_free_again(write) -> None:
    trace = load_trace(write("job_id,submit_s,duration_s,num_gpus\na,0,0,1\na,1,2,1\n"))
    assert len(trace) == 1
    assert trace.dropped == {"duration_not_positive": 1}


def test_odd_waits_and_unknown_columns_are_noted_not_dropped(write) -> None:
    header = "job_id,submit_s,duration_s,num_gpus,queue_s,colour"
    path = write(f"{header}\na,0,1,1,-3,red\nb,0,1,1,,red\nc,0,1,1,4,red\n")
    trace = load_trace(path, strict=True)
    assert trace.problems.noted == {"unknown_column": 1, "queue_invalid": 1}
    assert [truth.queue for truth in trace.truths] == [None, None, 4_000_000_000]
    assert trace.problems.lines() == [
        "noted 1x, queue_invalid: row 2, column queue_s: '-3' is no wait",
        "noted 1x, unknown_column: row 1, column colour: the column is ignored",
    ]


def test_only_a_few_examples_are_kept(write) -> None:
    rows = "".join(f"j{number},0,0,1\n" for number in range(1000))
    problems = load_trace(write(f"job_id,submit_s,duration_s,num_gpus\n{rows}")).problems
    assert problems.dropped == {"duration_not_positive": 1000}
    assert [example.row for example in problems.examples] == [2, 3, 4]
    assert problems.lines()[0].startswith(
        "dropped 1,000 rows, duration_not_positive: row 2, column duration_s:"
    )


def test_a_file_that_cannot_be_written(tmp_path: Path, write) -> None:
    trace = load_trace(write(GOOD))
    for target in (tmp_path / "absent" / "out.csv", tmp_path):
        with pytest.raises(OutputError, match="cannot be written"):
            write_csv(trace, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]
