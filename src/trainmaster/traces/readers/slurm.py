"""Slurm accounting: ``sacct --allusers --parsable2 --format=JobID,User,Account,...``.

The columns and their order are free; needed are JobID, Submit, one of ReqTRES and
AllocTRES (or ReqGRES), and one of ElapsedRaw, Elapsed, or Start with End. Steps
("123.batch") are no jobs and only noted. Times are taken as they are written; local
times are not mended where clocks change, run times come from Elapsed, which is right.
A job still running counts with the time it has run so far, and is noted.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.model.units import GPU, SECOND
from trainmaster.traces.problems import RowFault
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.readers.table import Reading, TableReader, id_field
from trainmaster.traces.schema import LIMIT_GPUS, optional_whole, status_word, time_field
from trainmaster.traces.trace import Truth

_TRES: Final = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)")
_GRES: Final = re.compile(r"gpu(?::([^:,=]+))??[:=](\d+)")
_SPAN: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?")
_NO_LIMIT: Final = frozenset(("", "UNLIMITED", "PARTITION_LIMIT", "INVALID", "NOT_SET", "UNKNOWN"))


class SlurmReader(TableReader):
    """One row is one job or one element of an array; the account is the tenant."""

    name: ClassVar[str] = "slurm"
    citation: ClassVar[str] = "slurm.schedmd.com/sacct.html"
    wall_clock: ClassVar[bool] = True
    delimiter: ClassVar[str] = "|"
    quoted: ClassVar[bool] = False
    signature: ClassVar[tuple[str, ...]] = ("JobID", "Submit")
    columns: Columns = Columns("JobID", "Submit", "Elapsed", "ReqTRES")
    required: ClassVar[tuple[str, ...]] = ("JobID", "Submit")
    optional: ClassVar[tuple[str, ...]] = (
        *("User", "Account", "Partition", "State", "Start", "End", "ElapsedRaw", "Elapsed"),
        *("Timelimit", "TimelimitRaw", "ReqTRES", "AllocTRES", "ReqGRES", "NNodes"),
    )

    def check(self, names: list[str], reading: Reading) -> None:
        for needed in (("ReqTRES", "AllocTRES", "ReqGRES"), ("ElapsedRaw", "Elapsed", "End")):
            if not set(needed) & set(names):
                raise InputError(
                    f"none of the columns {', '.join(needed)} is there",
                    file=reading.source.path,
                    row=1,
                    mend="add one to sacct --format",
                )
        run_time = next(name for name in ("ElapsedRaw", "Elapsed", "End") if name in names)
        gpus = next(name for name in ("ReqTRES", "ReqGRES", "AllocTRES") if name in names)
        self.columns = Columns("JobID", "Submit", run_time, gpus)

    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth] | None:
        job_id = id_field(fields["JobID"], "JobID")
        if "." in job_id:
            reading.problems.note("job_step", line, column="JobID", message=f"{job_id} is a step of a job")
            return None
        submit = reading.stamps.instant(fields["Submit"], line, "Submit")
        start = reading.stamps.optional(fields["Start"], line, "Start")
        end = reading.stamps.optional(fields["End"], line, "End")
        state = status_word(fields["State"])
        gpus, gpu_types = _gpus(fields)
        text = reading.pool.text
        job = Job(
            job_id,
            line,
            submit,
            reading.pool.request(gpus, gpu_types, _nodes(fields["NNodes"])),
            text(fields["Account"]),
            text(fields["User"]),
            declared=_limit(fields),
            job_class=text(fields["Partition"]),
        )
        truth = Truth(
            _duration(fields, start, end),
            text(state),
            start - submit if start is not None and start >= submit else None,
        )
        if state == "running":
            reading.problems.note("still_running", line, message=f"job {job_id} counts with its time so far")
        return job, truth


def _gpus(fields: dict[str, str]) -> tuple[int, tuple[str, ...]]:
    """Milli-GPUs, and the type when the user asked for one (what was allocated proves no wish)."""
    for column, pattern in (("ReqTRES", _TRES), ("ReqGRES", _GRES), ("AllocTRES", _TRES)):
        counts: dict[str, int] = {}
        for gpu_type, count in pattern.findall(fields[column]):
            counts[gpu_type] = counts.get(gpu_type, 0) + int(count[:12])
        typed = {name: count for name, count in counts.items() if name}
        total = counts.get("", 0) or sum(typed.values())
        if total > LIMIT_GPUS:
            raise RowFault("gpus_invalid", f"{total} GPUs", column=column)
        if total:
            return total * GPU, (*typed,) if len(typed) == 1 and column != "AllocTRES" else ()
    return 0, ()


def _nodes(text: str) -> int | None:
    # Large counts are written with a suffix ("1K"); no GPU job has them.
    return optional_whole(text, "NNodes", "num_nodes_invalid") if text.isdecimal() else None


def _duration(fields: dict[str, str], start: int | None, end: int | None) -> int | None:
    if fields["ElapsedRaw"]:
        return time_field(fields["ElapsedRaw"], "ElapsedRaw", "duration_invalid")
    if fields["Elapsed"]:
        return _span(fields["Elapsed"], "Elapsed", "duration_invalid", 1)
    return None if start is None or end is None else end - start


def _limit(fields: dict[str, str]) -> int | None:
    raw, text = fields["TimelimitRaw"], fields["Timelimit"]
    if raw.upper() not in _NO_LIMIT:
        return time_field(raw, "TimelimitRaw", "walltime_invalid", 60 * SECOND) or None
    if text.upper() not in _NO_LIMIT:
        return _span(text, "Timelimit", "walltime_invalid", 60) or None
    return None


def _span(text: str, column: str, reason: str, lone_unit: int) -> int:
    """Nanoseconds of "[days-]hours[:minutes[:seconds]]", "minutes:seconds", or a lone number."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise RowFault(reason, f"{text!r} is not a span of time", column=column, mend="such as 1-00:00:00")
    days, *parts = found.groups()
    numbers = [int(part[:12]) for part in parts if part is not None]
    if days is not None or len(numbers) == 3:
        units = (3600, 60, 1)
    elif len(numbers) == 2:
        units = (60, 1, 0)
    else:
        units = (lone_unit, 0, 0)
    total = int((days or "0")[:12]) * 86_400 + sum(n * unit for n, unit in zip(numbers, units, strict=False))
    return time_field(str(total), column, reason)
