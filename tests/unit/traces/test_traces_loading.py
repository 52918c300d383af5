"""Loading: order, sharing, dependencies, the trace's own figures."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import trainmaster.traces
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job, Request
from trainmaster.model.units import HOUR, SECOND
from trainmaster.traces import FORMATS, Trace, Truth, load_trace
from trainmaster.traces.problems import Problems

HEADER = "job_id,submit_s,duration_s,num_gpus"


def load(folder: Path, text: str, **options: bool) -> Trace:
    path = folder / "log.csv"
    path.write_text(text)
    return load_trace(path, **options)


def test_jobs_are_sorted_by_submit_time_then_by_row(tmp_path: Path) -> None:
    trace = load(tmp_path, f"{HEADER}\nz,5,1,1\nb,0,2,1\na,5,3,1\nc,0,4,1\nx,1,0,1\n")
    assert [job.id for job in trace.jobs] == ["b", "c", "z", "a"]
    assert [job.sequence for job in trace.jobs] == [0, 1, 2, 3]
    assert [truth.duration for truth in trace.truths] == [2 * SECOND, 4 * SECOND, SECOND, 3 * SECOND]


def test_spreadsheet_habits_are_understood(tmp_path: Path) -> None:
    text = '\ufeff"job_id",submit_s,duration_s,num_gpus,tenant\r\n\r\n a , 5.0 ,10,"8",x\r\n\r\n'
    trace = load(tmp_path, text)
    assert (trace.jobs[0].id, trace.jobs[0].submit, trace.jobs[0].request.gpus) == ("a", 5 * SECOND, 8000)


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    trace = load(tmp_path, "user,num_gpus,duration_s,submit_s,job_id\nann,0.46,10,5,a\n")
    assert (trace.jobs[0].user, trace.jobs[0].request.gpus, trace.jobs[0].submit) == ("ann", 460, 5 * SECOND)


def test_equal_texts_and_requests_are_shared(tmp_path: Path) -> None:
    rows = "".join(f"j{index},{index},9,{gpus},t\n" for index, gpus in enumerate(("8", "8.0", "8", "4")))
    jobs = load(tmp_path, f"{HEADER},tenant\n{rows}").jobs
    assert jobs[0].request is jobs[1].request is jobs[2].request
    assert jobs[3].request is not jobs[0].request
    assert jobs[0].tenant is jobs[3].tenant


def test_a_model_takes_the_place_of_a_duration(tmp_path: Path) -> None:
    trace = load(tmp_path, "job_id,submit_s,num_gpus,model\na,0,1,bert\nb,1,1,\n")
    assert trace.truths == [Truth(None)]
    assert trace.dropped == {"duration_missing": 1}
    trace = load(tmp_path, f"{HEADER},model\na,0,,1,bert\nb,1,5,1,bert\n")
    assert [truth.duration for truth in trace.truths] == [None, 5 * SECOND]


def test_a_synthetic_trace_says_so(tmp_path: Path) -> None:
    assert load(tmp_path, f"{HEADER},synthetic\na,0,1,1,1\n").synthetic
    assert not load(tmp_path, f"{HEADER},synthetic\na,0,1,1,0\nb,0,1,1,\n").synthetic
    assert not load(tmp_path, f"{HEADER}\na,0,1,1\n").synthetic


def test_figures_of_a_trace() -> None:
    jobs = [Job("a", 0, 0, Request(2000), "x"), Job("b", 1, 10 * SECOND, Request(500), "b")]
    trace = Trace(
        [*jobs, Job("c", 2, 90 * SECOND, Request(9000), "x")], [Truth(HOUR), Truth(2 * HOUR), Truth(None)]
    )
    assert (len(trace), trace.span_s, trace.gpu_hours, trace.tenants) == (3, 90.0, 3.0, ("b", "x"))


def test_the_name_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "week.v2.csv.gz"
    path.write_text(f"{HEADER}\na,0,1,1\n")
    trace = load_trace(str(path))
    assert (trace.name, trace.path, trace.format) == ("week.v2", str(path), "csv")


def test_dependencies_on_absent_jobs_count_as_met(tmp_path: Path) -> None:
    trace = load(tmp_path, f"{HEADER},depends_on\na,0,1,1,\nzero,0,1,0,\nb,1,1,1,a;zero;ghost\nc,2,1,1,b\n")
    assert [job.depends_on for job in trace.jobs] == [(), ("a",), ("b",)]
    assert trace.dropped == {"zero_gpus": 1}
    assert trace.problems.noted == {"dependency_absent": 1}
    assert trace.problems.examples[-1].message == "job 'b' depends on 'zero', which is not in the trace"


def test_jobs_that_wait_for_each_other_are_dropped(tmp_path: Path) -> None:
    rows = "a,0,1,1,b\nb,1,1,1,a\nc,2,1,1,b\nself,3,1,1,self\nfree,4,1,1,\ne,5,1,1,free;free\n"
    text = f"{HEADER},depends_on\n{rows}"
    trace = load(tmp_path, text)
    assert [(job.id, job.sequence) for job in trace.jobs] == [("free", 0), ("e", 1)]
    assert len(trace.truths) == 2
    assert trace.dropped == {"dependency_cycle": 4}
    assert [example.row for example in trace.problems.examples] == [2, 3, 4]
    with pytest.raises(InputError, match=r"row 2, column depends_on: job 'a' waits for itself through b"):
        load(tmp_path, text, strict=True)


def test_garbage_collection_is_as_it_was_before(tmp_path: Path) -> None:
    gc.disable()
    try:
        load(tmp_path, f"{HEADER}\na,0,1,1\n")
        assert not gc.isenabled()
    finally:
        gc.enable()
    load(tmp_path, f"{HEADER}\na,0,1,1\n")
    assert gc.isenabled()
    with pytest.raises(InputError):
        load(tmp_path, f"{HEADER}\na,0,1,0\n", strict=True)
    assert gc.isenabled()


def test_problems_show_dropped_rows_before_notes_and_the_frequent_first() -> None:
    problems = Problems("log.csv")
    problems.note("odd", 9, message="strange")
    for row in (1, 2):
        problems.drop("zero_gpus", row, message="none", column="num_gpus")
    problems.drop("duplicate_id", 3)
    assert problems.lines() == [
        "dropped 2 rows, zero_gpus: row 1, column num_gpus: none",
        "dropped 1 row, duplicate_id: row 3",
        "noted 1x, odd: row 9: strange",
    ]
    assert problems.dropped_rows == 3


def test_public_names() -> None:
    assert trainmaster.traces.__all__ == [
        "FORMATS",
        "Problems",
        "Reader",
        "Trace",
        "Truth",
        "load_trace",
        "sample",
        "slice_trace",
        "write_csv",
    ]
    assert (
        *("csv", "philly", "helios", "acme", "pai", "openb", "itp"),
        *("gavel", "muri", "chronus", "tiresias", "slurm", "swf"),
    ) == FORMATS


def test_importing_traces_loads_nothing_heavy() -> None:
    code = (
        "import sys, trainmaster.traces; "
        "heavy = {'numpy', 'json', 'zoneinfo', 'scipy', 'pandas', 'importlib.metadata', 'rich'}; "
        "readers = [name for name in sys.modules if 'traces.readers.' in name]; "
        "print(sorted(heavy & set(sys.modules)), readers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['trainmaster.traces.readers.base']"
