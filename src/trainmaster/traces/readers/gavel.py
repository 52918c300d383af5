"""Gavel ``.trace``: tab-separated, no header, no duration (steps / throughput gives it).

Three layouts are published: job type, command, steps argument, [needs-data flag,] total
steps, arrival s, scale factor (6 or 7 fields); and job type, command, folder, steps
argument, needs-data flag, total steps, scale factor, weight, SLO, arrival s (10 fields).
Jobs are numbered from 0; "ResNet-50 (batch size 32)" is a model with its batch size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from trainmaster.model.job import Job
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Columns, Reader
from trainmaster.traces.readers.table import Pool
from trainmaster.traces.schema import gpus_field, is_number, time_field, workload_fields
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Truth

_LAYOUTS: Final[dict[int, tuple[int, int, int]]] = {6: (3, 4, 5), 7: (4, 5, 6), 10: (5, 9, 6)}
"""Number of fields: places of total steps, arrival and scale factor."""

_TYPE: Final = re.compile(r"(.*?)\s*\(batch size (\d+)\)")


class GavelReader(Reader):
    """One line is one job."""

    name: ClassVar[str] = "gavel"
    citation: ClassVar[str] = "Narayanan et al., OSDI '20; github.com/stanford-futuredata/gavel"

    columns: Columns = Columns("line", "arrival", "total steps", "scale factor")

    def detect(self, head: str, path: Path) -> bool:
        fields = head.split("\n", 1)[0].split("\t")
        if len(fields) not in _LAYOUTS:
            return False
        return all(is_number(fields[place]) for place in _LAYOUTS[len(fields)])

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        pool = Pool()
        for line, fields in source.table("\t", quoted=False, header=False, drop=problems.drop_unread):
            problems.rows += 1
            try:
                job = _job(fields, line, problems.rows - 1, pool)
            except RowFault as fault:
                problems.drop_fault(fault, line)
                continue
            yield job, Truth(None)


def _job(fields: list[str], line: int, number: int, pool: Pool) -> Job:
    if len(fields) not in _LAYOUTS:
        raise RowFault("field_count", f"{len(fields)} fields, a Gavel trace has 6, 7 or 10")
    steps, arrival, scale = (fields[place].strip() for place in _LAYOUTS[len(fields)])
    job_type = fields[0].strip()
    if not job_type:
        raise RowFault("model_missing", "is empty", column="job type")
    sized = _TYPE.fullmatch(job_type)
    model, batch = sized.groups() if sized else (job_type, "")
    return Job(
        str(number),
        line,
        time_field(arrival, "arrival", "submit_invalid"),
        pool.request(gpus_field(scale, "scale factor")),
        workload=workload_fields(pool.text(model), batch, steps),
    )
