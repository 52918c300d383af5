"""Standard Workload Format v2.2: 18 numbers a line, ';' before comments, -1 = unknown.

The format knows processors; each is taken as one GPU (the number requested, else the
number allocated). Field 17, the preceding job, becomes a dependency; think times are
not replayed. Lines of partial executions (status 2 to 4) repeat the id of their job and
are dropped as duplicates when the job's own line comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from trainmaster.model.job import Job
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Columns, Reader
from trainmaster.traces.readers.table import Pool
from trainmaster.traces.schema import gpus_field, is_number, time_field
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Truth

_FIELDS: Final = 18
_STATUS: Final = {
    "0": "failed",
    "1": "completed",
    "2": "partial",
    "3": "partial",
    "4": "failed",
    "5": "cancelled",
}


class SwfReader(Reader):
    """One line is one job; the group is the tenant, the queue is the class."""

    name: ClassVar[str] = "swf"
    citation: ClassVar[str] = "Chapin et al. 1999; www.cs.huji.ac.il/labs/parallel/workload/swf.html"

    columns: Columns = Columns("job number", "submit time", "run time", "requested processors")

    def detect(self, head: str, path: Path) -> bool:
        lines = [line for line in head.splitlines() if line.strip()]
        data = [line.split() for line in lines if not line.lstrip().startswith(";")]
        if not data:
            return bool(lines) and path.name.removesuffix(".gz").endswith(".swf")
        return len(data[0]) == _FIELDS and all(is_number(field) for field in data[0])

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        pool = Pool()
        for line, text in source.lines():
            fields = text.partition(";")[0].split()
            if not fields:
                continue
            problems.rows += 1
            try:
                pair = _record(fields, line, pool)
            except RowFault as fault:
                problems.drop_fault(fault, line)
                continue
            yield pair


def _record(fields: list[str], line: int, pool: Pool) -> tuple[Job, Truth]:
    if len(fields) != _FIELDS:
        raise RowFault("field_count", f"{len(fields)} fields, the format has {_FIELDS}")
    known = ["" if _is_unknown(field) else field for field in fields]
    number, submit, wait, run, allocated, _, _, requested, limit, _, status, user, group, _, queue = known[
        :15
    ]
    preceding = known[16]
    if not number:
        raise RowFault("id_missing", "is unknown", column="job number")
    processors = requested or allocated
    declared = time_field(limit, "requested time", "walltime_invalid") if limit else 0
    job = Job(
        number,
        line,
        time_field(submit, "submit time", "submit_invalid"),
        pool.request(gpus_field(processors, "requested processors")),
        pool.text(group),
        pool.text(user),
        declared=declared if declared > 0 else None,
        depends_on=(preceding,) if preceding and preceding != "0" else (),
        job_class=pool.text(queue),
    )
    queue_time = time_field(wait, "wait time", "queue_invalid") if wait else -1
    return job, Truth(
        time_field(run, "run time", "duration_invalid") if run else None,
        _STATUS.get(status, ""),
        queue_time if queue_time >= 0 else None,
    )


def _is_unknown(field: str) -> bool:
    return field in ("-1", "-1.0", "-1.00")
