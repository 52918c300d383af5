"""What is peculiar to a format, beyond the known answers of the contract tests."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from trainmaster.model.errors import InputError
from trainmaster.model.job import Request
from trainmaster.model.units import DAY, HOUR, SECOND
from trainmaster.testing.trace_samples import SAMPLES
from trainmaster.traces import Reader, Trace, Truth, load_trace
from trainmaster.traces.loading import read_trace
from trainmaster.traces.readers import ENTRY_POINTS, format_names, itp, normalized

MINUTE = 60 * SECOND


def load(folder: Path, text: str, name: str = "log.txt", **options: str) -> Trace:
    path = folder / name
    path.write_text(text)
    return load_trace(path, **options)  # type: ignore[arg-type]


# Helios and Acme


def test_helios_takes_the_time_between_start_and_end_where_the_duration_differs(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        "job_id,user,vc,gpu_num,state,submit_time,start_time,end_time,duration\n"
        "a,u,v,1,TIMEOUT,2020-06-09 10:00:00,2020-06-09 10:10:00,2020-06-09 11:10:00,4200\n"
        "b,u,v,1,NODE_FAIL,2020-06-09 10:00:00,2020-06-09 10:10:00,,4200\n"
        "c,u,v,1,COMPLETED,2020-06-09 10:00:00,2020-06-09 09:59:59,2020-06-09 10:59:59,3600\n",
    )
    assert [truth.duration for truth in trace.truths] == [HOUR, 4200 * SECOND, HOUR]
    assert [truth.queue for truth in trace.truths] == [10 * MINUTE, 10 * MINUTE, None]
    assert [truth.status for truth in trace.truths] == ["timeout", "node_fail", "completed"]
    assert trace.problems.noted == {"duration_differs": 1}
    assert trace.origin == "2020-06-09 10:00:00"


def test_kalos_holds_gpus_until_it_is_stopped(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,"
        "start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
        "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
        "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
        "dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,"
        "2023-05-17 11:28:54+00:00,2023-05-17 11:30:04+00:00,,2023-05-17 11:30:16+00:00,82,12.0,5248.0\n",
        "trace_kalos.csv",
    )
    assert trace.format == "acme"
    assert [truth.duration for truth in trace.truths] == [8 * SECOND, 82 * SECOND]
    assert trace.problems.noted == {"duration_differs": 1}
    assert trace.jobs[1].request == Request(64_000, nodes=8)


# Alibaba PAI


def test_pai_as_a_folder_with_headers_and_gzip(tmp_path: Path) -> None:
    sample = SAMPLES["pai"]
    folder = tmp_path / "pai"
    folder.mkdir()
    sample.write(folder)
    by_file = load_trace(folder / "pai_job_table.csv")
    swapped = "\n".join(",".join(reversed(line.split(","))) for line in sample.text.splitlines())
    (folder / "pai_job_table.csv").unlink()
    (folder / "pai_job_table.csv.gz").write_bytes(gzip.compress(swapped.encode()))
    (folder / "pai_job_table.header").write_text("end_time,start_time,status,user,inst_id,job_name\n")
    by_folder = load_trace(folder)
    assert by_folder.format == "pai"
    assert [job.id for job in by_folder.jobs] == [job.id for job in by_file.jobs] == ["j2", "j1"]
    assert by_folder.truths == by_file.truths
    assert by_folder.dropped == by_file.dropped


def test_pai_with_a_header_line_inside(tmp_path: Path) -> None:
    sample = SAMPLES["pai"]
    path = sample.write(tmp_path, "job_name,inst_id,user,status,start_time,end_time\n" + sample.text)
    trace = load_trace(path)
    assert (len(trace), trace.problems.rows) == (2, 5)


def test_pai_tables_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "pai_job_table.csv"
    path.write_text(SAMPLES["pai"].text)
    with pytest.raises(InputError) as caught:
        load_trace(path)
    assert str(caught.value) == (
        f"{tmp_path}: pai_task_table.csv is missing (put both tables into one folder)"
    )
    (tmp_path / "pai_task_table.csv").write_text("j1,worker,1,Terminated,0,5,6,3,50,V100\n")
    (tmp_path / "pai_job_table.header").write_text("job_name,user\n")
    with pytest.raises(
        InputError, match=r"pai_job_table.header, row 1, column inst_id: the column is missing"
    ):
        load_trace(path)


def test_pai_tasks_add_up(tmp_path: Path) -> None:
    (tmp_path / "pai_task_table.csv").write_text(
        "j,worker,3,Terminated,10,50,6,3,50,V100\n"
        "j,chief,1,Terminated,5,60,6,3,100,T4\n"
        "j,ps,2,Terminated,,,6,3,,\n"
        "bad,worker,many,Terminated,10,50,6,3,50,V100\n"
        "short,worker\n"
    )
    trace = load(
        tmp_path,
        "j,i,u,Terminated,0,\nbad,i,u,Terminated,0,9\nshort,i,u,Terminated,0,9\nj,i,u\n",
        "pai_job_table.csv",
    )
    assert trace.jobs[0].request == Request(2500), "3 x 50 % + 100 %, of two types"
    assert trace.truths[0] == Truth(55 * SECOND, "completed", 5 * SECOND)
    assert trace.dropped == {"field_count": 1, "gpus_invalid": 1, "task_missing": 1}
    assert trace.problems.noted == {"mixed_gpu_types": 1, "task_row_invalid": 1}


def test_pai_times_of_tasks_out_of_order(tmp_path: Path) -> None:
    (tmp_path / "pai_task_table.csv").write_text(
        "j,worker,1,Terminated,10,90,6,3,50,V100\nj,ps,1,Terminated,12,60,6,3,,\nk,w,1,Terminated,1,60,6,3,50,T4\n"
    )
    trace = load(tmp_path, "j,i,u,Terminated,5,\nk,i,u,Terminated,7,60\n", "pai_job_table.csv")
    assert trace.truths == [
        Truth(80 * SECOND, "completed", 5 * SECOND),
        Truth(53 * SECOND, "completed", 0),  # a task can't run before its job is submitted
    ]


def test_openb_counts_whole_gpus(tmp_path: Path) -> None:
    header = SAMPLES["openb"].text.splitlines()[0]
    trace = load(
        tmp_path, f"{header}\npod,1,1,8,1000,,LS,Succeeded,5,100,15\nodd,1,1,1,1000,,LS,Failed,9,100,8\n"
    )
    assert [job.request.gpus for job in trace.jobs] == [8000, 1000]
    assert trace.truths == [Truth(85 * SECOND, "completed", 10 * SECOND), Truth(92 * SECOND, "failed", None)]


# Slurm


def slurm(folder: Path, header: str, *rows: str) -> Trace:
    return load(folder, "\n".join(("JobID|Submit|" + header, *rows)) + "\n")


@pytest.mark.parametrize(
    ("limit", "ns"),
    [
        ("1-00:00:00", DAY),
        ("2-12", 60 * HOUR),
        ("2-12:30", 60 * HOUR + 30 * MINUTE),
        ("01:30:15", 90 * MINUTE + 15 * SECOND),
        ("30:05", 30 * MINUTE + 5 * SECOND),
        ("45", 45 * MINUTE),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_slurm_time_limits(tmp_path: Path, limit: str, ns: int | None) -> None:
    trace = slurm(tmp_path, "Timelimit|ReqTRES|ElapsedRaw", f"1|2024-03-05T10:00:00|{limit}|gres/gpu=1|60")
    assert trace.jobs[0].declared == ns


@pytest.mark.parametrize(
    ("requested", "allocated", "request_"),
    [
        ("billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=64G,node=1", "", Request(2000, ("a100",))),
        ("gres/gpu:a100=2,gres/gpu:v100=3", "", Request(5000)),
        ("gres/gpu=4", "gres/gpu=4,gres/gpu:h100=4", Request(4000)),
        ("cpu=4", "gres/gpu=4,gres/gpu:h100=4", Request(4000)),
        ("gres/gpumem=40G,gres/gpu=1", "", Request(1000)),
    ],
)
def test_slurm_gpus(tmp_path: Path, requested: str, allocated: str, request_: Request) -> None:
    trace = slurm(
        tmp_path, "ReqTRES|AllocTRES|Elapsed", f"1|2024-03-05T10:00:00|{requested}|{allocated}|1-01:00:05"
    )
    assert trace.jobs[0].request == request_
    assert trace.truths[0].duration == 25 * HOUR + 5 * SECOND


def test_slurm_arrays_steps_and_odd_rows(tmp_path: Path) -> None:
    trace = slurm(
        tmp_path,
        "JobName|ReqTRES|Start|End|State",
        '12_1|2024-03-05T10:00:00|say "hi|gres/gpu=1|2024-03-05T10:00:00|2024-03-05T10:05:00|COMPLETED',
        "12_1.extern|2024-03-05T10:00:00|x|gres/gpu=1|2024-03-05T10:00:00|2024-03-05T10:05:00|COMPLETED",
        "12_[2-9]|2024-03-05T10:00:00|x|gres/gpu=1|Unknown|Unknown|PENDING",
        "13|2024-03-05T10:00:00|a|b|gres/gpu=1|2024-03-05T10:00:00|2024-03-05T10:05:00|COMPLETED",
        "14|Unknown|x|gres/gpu=1|2024-03-05T10:00:00|2024-03-05T10:05:00|COMPLETED",
    )
    assert [job.id for job in trace.jobs] == ["12_1"]
    assert trace.dropped == {"duration_missing": 1, "field_count": 1, "submit_missing": 1}
    assert trace.problems.noted == {"job_step": 1}
    assert trace.problems.rows == 4


def test_slurm_times_as_seconds_since_1970(tmp_path: Path) -> None:
    trace = slurm(
        tmp_path,
        "ReqTRES|Start|End",
        "1|1709632800|gres/gpu=1|1709632860|1709633000",
        "2|1709632801|gres/gpu=1|1709632860|1709633000",
    )
    assert [job.submit for job in trace.jobs] == [0, SECOND]
    assert trace.truths[0] == Truth(140 * SECOND, "", 60 * SECOND)
    assert trace.origin == "2024-03-05 10:00:00 UTC"


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("ReqTRES|ElapsedRaw|Elapsed", "gres/gpu=1|0|00:00:00", "ElapsedRaw"),
        ("ReqTRES|Elapsed", "gres/gpu=1|00:00:00", "Elapsed"),
        ("ReqTRES|Start|End", "gres/gpu=1|2024-03-05T10:00:00|2024-03-05T10:00:00", "End"),
        ("AllocTRES|Elapsed", "cpu=1|00:01:00", "AllocTRES"),
    ],
)
def test_slurm_faults_name_the_columns_that_are_there(
    tmp_path: Path, header: str, row: str, column: str
) -> None:
    trace = slurm(tmp_path, header, f"1|2024-03-05T10:00:00|{row}")
    assert trace.problems.examples[0].column == column


@pytest.mark.parametrize(
    ("header", "needed"),
    [("ElapsedRaw", "ReqTRES, AllocTRES, ReqGRES"), ("ReqTRES", "ElapsedRaw, Elapsed, End")],
)
def test_slurm_without_gpus_or_run_time_is_at_fault(tmp_path: Path, header: str, needed: str) -> None:
    with pytest.raises(InputError) as caught:
        slurm(tmp_path, header, "1|2024-03-05T10:00:00|5")
    assert str(caught.value) == (
        f"{tmp_path / 'log.txt'}, row 1: none of the columns {needed} is there (add one to sacct --format)"
    )


# The Tiresias family, SWF, Gavel


def test_the_unit_of_time_of_the_tiresias_family(tmp_path: Path) -> None:
    row = "7,2,{},10,vgg16,{},0"
    header = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval"
    seconds = load(tmp_path, f"{header}\n{row.format(60, 120)}\n")
    minutes = load(tmp_path, f"{header},expect_time_list\n{row.format(1, 2)},3\n")
    millis = load(tmp_path, f"{header},resource_time_0\n{row.format(60_000, 120_000)},5\n")
    assert [trace.format for trace in (seconds, minutes, millis)] == ["tiresias", "chronus", "muri"]
    for trace in (seconds, minutes, millis):
        assert (trace.jobs[0].submit, trace.truths[0].duration) == (60 * SECOND, 120 * SECOND)
    assert minutes.jobs[0].deadlines[0].at == 4 * MINUTE


def test_swf_counts_processors_as_gpus_and_skips_comments(tmp_path: Path) -> None:
    head = "; Version: 2.2\n" + "; Note: a long header\n" * 600
    trace = load(tmp_path, head + SAMPLES["swf"].text, "long.swf")
    assert trace.format == "swf"
    assert [job.request.gpus for job in trace.jobs] == [16_000, 8000]
    assert trace.problems.rows == 3


def test_swf_depends_on_the_preceding_job_and_notes_an_absent_one(tmp_path: Path) -> None:
    row = "{} {} 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 1 {} -1\n"
    trace = load(tmp_path, row.format(1, 0, -1) + row.format(2, 5, 1) + row.format(3, 6, 99), format="swf")
    assert [job.depends_on for job in trace.jobs] == [(), ("1",), ()]
    assert trace.problems.noted == {"dependency_absent": 1}


def test_swf_takes_what_was_requested_else_what_was_allocated(tmp_path: Path) -> None:
    row = "{} 0 0 60 {} -1 -1 {} -1 -1 1 1 1 1 1 1 0 -1\n"
    trace = load(tmp_path, row.format(1, 4, 8) + row.format(2, 4, -1) + row.format(3, -1, -1), format="swf")
    assert [job.request.gpus for job in trace.jobs] == [8000, 4000]
    assert trace.dropped == {"gpus_invalid": 1}
    assert trace.problems.noted == {}, "0 stands for no preceding job as well"


def test_gavel_layouts(tmp_path: Path) -> None:
    for line in (
        "LM (batch size 80)\tpython3 main.py\t--steps\t500\t30.5\t2",
        "LM (batch size 80)\tpython3 main.py\t--steps\t1\t500\t30.5\t2",
        "LM (batch size 80)\tpython3 main.py\tlm\t--steps\t0\t500\t2\t1\t-1\t30.5",
    ):
        trace = load(tmp_path, line + "\n\tx\t--steps\t1\t9\t0\t1\n")
        assert trace.format == "gavel"
        (job,) = trace.jobs
        assert (job.id, job.submit, job.request.gpus) == ("0", 30_500_000_000, 2000)
        assert job.workload is not None
        assert (job.workload.model, job.workload.batch_size, job.workload.iterations) == ("LM", 80, 500)
        assert trace.dropped == {"model_missing": 1}


# Readers of other packages


class SemicolonReader(normalized.NormalizedReader):
    name = "semicolon"
    citation = "made up"

    def detect(self, head: str, path: Path) -> bool:
        return head.startswith("semicolon")


class EntryPoint:
    def __init__(self, name: str, target: object) -> None:
        self.name = name
        self._target = target

    def load(self) -> object:
        return self._target


def test_readers_of_other_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("semicolon", SemicolonReader), EntryPoint("broken", dict)]

    def entry_points(*, group: str) -> list[EntryPoint]:
        return points if group == ENTRY_POINTS else []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert format_names()[-2:] == ("broken", "semicolon")
    good = "job_id,submit_s,duration_s,num_gpus\na,0,1,1\n"
    assert load(tmp_path, good, format="semicolon").format == "semicolon"
    with pytest.raises(InputError, match=r"trace format 'broken' is not a trainmaster\.traces\.Reader"):
        load(tmp_path, good, format="broken")
    with pytest.raises(InputError, match="did you mean 'semicolon'"):
        load(tmp_path, good, format="semicolons")


class ClockReader(itp.ItpReader):
    name = "clock"
    wall_clock = True


def test_deadlines_move_with_the_clock(tmp_path: Path) -> None:
    path = SAMPLES["itp"].write(tmp_path)
    trace = read_trace(ClockReader(), path)
    assert [(job.submit, job.deadlines[0].at) for job in trace.jobs] == [
        (0, 1000 * SECOND),
        (566 * SECOND, 5347 * SECOND),
    ]
    assert trace.origin == "1970-01-01 04:26:40"


def test_a_reader_needs_both_methods() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Reader()  # type: ignore[abstract]
