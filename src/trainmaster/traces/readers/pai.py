"""Alibaba PAI (2020): a folder with ``pai_job_table.csv`` and ``pai_task_table.csv``.

The tables have no header line; a ``.header`` file beside a table names its columns,
else they are in the published order. A job's GPUs are the sum over its tasks of
``inst_num`` x ``plan_gpu`` percent. Its wait is the earliest task start less the job's
start (= submission), its run time from there to the job's end. A job whose tasks are
absent, or that did not end, is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Columns, Reader
from trainmaster.traces.readers.table import Pool, id_field
from trainmaster.traces.schema import number_field, status_word, time_field
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Truth

_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "pai_job_table": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    "pai_task_table": (
        *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
        *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
    ),
}
_STATUSES: Final = frozenset(("Running", "Terminated", "Failed", "Waiting"))


class PaiReader(Reader):
    """One row of the job table is one job."""

    name: ClassVar[str] = "pai"
    citation: ClassVar[str] = "Weng et al., NSDI '22; github.com/alibaba/clusterdata, cluster-trace-gpu-v2020"
    columns: Columns = Columns("job_name", "start_time", "end_time", "plan_gpu")
    directory: ClassVar[bool] = True

    def detect(self, head: str, path: Path) -> bool:
        if path.is_dir():
            return any(name.startswith("pai_job_table") for name in head.split("\n"))
        if path.name.startswith("pai_job_table"):
            return True
        fields = head.split("\n", 1)[0].split(",")
        return len(fields) == len(_COLUMNS["pai_job_table"]) and fields[3].strip() in _STATUSES

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        jobs_path, tasks_path = _tables(source.path)
        problems.file = str(jobs_path)
        tasks = _read_tasks(source, tasks_path, problems)
        pool = Pool()
        for line, fields in _rows(source, jobs_path, "pai_job_table", problems.drop_unread):
            problems.rows += 1
            try:
                if not fields:
                    raise RowFault("field_count", "the row has not as many fields as the table")
                pair = _job(fields, line, tasks, pool, problems)
            except RowFault as fault:
                problems.drop_fault(fault, line)
                continue
            yield pair


@dataclass(slots=True)
class _Tasks:
    """What the tasks of one job add up to."""

    gpus: int = 0
    start: int | None = None
    end: int | None = None
    gpu_types: set[str] = field(default_factory=set)
    fault: RowFault | None = None


def _job(
    fields: dict[str, str], line: int, tasks: dict[str, _Tasks], pool: Pool, problems: Problems
) -> tuple[Job, Truth]:
    job_id = id_field(fields["job_name"], "job_name")
    submit = time_field(fields["start_time"], "start_time", "submit_invalid")
    task = tasks.get(job_id)
    if task is None:
        raise RowFault("task_missing", f"job {job_id!r} has no row in pai_task_table", column="job_name")
    if task.fault is not None:
        raise task.fault
    started = submit if task.start is None else max(submit, task.start)
    ended = time_field(fields["end_time"], "end_time", "duration_invalid") if fields["end_time"] else task.end
    if len(task.gpu_types) > 1:
        message = f"the tasks of job {job_id!r} use {', '.join(sorted(task.gpu_types))}; any type is taken"
        problems.note("mixed_gpu_types", line, message=message)
    types = tuple(task.gpu_types) if len(task.gpu_types) == 1 else ()
    job = Job(job_id, line, submit, pool.request(task.gpus, types), user=pool.text(fields["user"]))
    duration = None if ended is None else ended - started
    return job, Truth(duration, pool.text(status_word(fields["status"])), started - submit)


def _read_tasks(source: Source, path: Path, problems: Problems) -> dict[str, _Tasks]:
    def note(fault: RowFault, line: int) -> None:
        problems.note("task_row_invalid", line, message=f"a row of pai_task_table: {fault.message}")

    tasks: dict[str, _Tasks] = {}
    for line, fields in _rows(source, path, "pai_task_table", note):
        if not fields:
            note(RowFault("field_count", "too few fields"), line)
            continue
        task = tasks.setdefault(fields["job_name"], _Tasks())
        try:
            _add(task, fields)
        except RowFault as fault:
            task.fault = fault
    return tasks


def _add(task: _Tasks, fields: dict[str, str]) -> None:
    if fields["start_time"]:
        start = time_field(fields["start_time"], "task start_time", "task_invalid")
        task.start = start if task.start is None else min(task.start, start)
    if fields["end_time"]:
        end = time_field(fields["end_time"], "task end_time", "task_invalid")
        task.end = end if task.end is None else max(task.end, end)
    if not fields["plan_gpu"]:
        return
    instances = number_field(fields["inst_num"] or "1", "inst_num", "gpus_invalid")
    percent = number_field(fields["plan_gpu"], "plan_gpu", "gpus_invalid")
    if not 0 <= instances <= 1e6 or not 0 <= percent <= 1e6:
        raise RowFault("gpus_invalid", f"{instances:g} x {percent:g} % of a GPU", column="plan_gpu")
    gpus = round(instances * percent * 10)
    task.gpus += gpus
    if gpus and fields["gpu_type"]:
        task.gpu_types.add(fields["gpu_type"])


def _rows(
    source: Source, path: Path, table: str, drop: Callable[[RowFault, int], None]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by column; no fields at all when their number is wrong."""
    columns = _header(source, path, table)
    for line, row in source.table(path=path, header=False, drop=drop):
        if [name.strip() for name in row] == columns:
            continue  # some copies have the header as first line
        fields = dict(zip(columns, (text.strip() for text in row), strict=False))
        yield line, fields if len(row) == len(columns) else {}


def _header(source: Source, path: Path, table: str) -> list[str]:
    header = path.parent / f"{table}.header"
    if not header.is_file():
        return list(_COLUMNS[table])
    _, names = next(source.table(path=header), (0, []))
    names = [name.strip() for name in names]
    for column in _COLUMNS[table]:
        if column not in names:
            raise InputError("the column is missing", file=header, row=1, column=column)
    return names


def _tables(path: Path) -> tuple[Path, Path]:
    """Paths of the job table and of the task table."""
    if path.is_dir():
        return _table_in(path, "pai_job_table"), _table_in(path, "pai_task_table")
    return path, _table_in(path.parent, "pai_task_table")


def _table_in(folder: Path, table: str) -> Path:
    for name in (f"{table}.csv", f"{table}.csv.gz", table):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{table}.csv is missing", file=folder, mend="put both tables into one folder")
