"""Helios (SenseTime 2020): ``{Earth,Saturn,Uranus,Venus}/cluster_log.csv``.

Times are China time without a zone (no clock changes there). A job that never started
has no duration and is dropped. The run time is end - start where both are known, since
that is when GPUs were held; a `duration` column that says otherwise is noted.
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.model.job import Job
from trainmaster.model.units import SECOND
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.readers.table import Reading, TableReader, id_field
from trainmaster.traces.schema import gpus_field, optional_whole, status_word, time_field
from trainmaster.traces.trace import Truth


class HeliosReader(TableReader):
    """One row is one Slurm job of the cluster."""

    name: ClassVar[str] = "helios"
    citation: ClassVar[str] = "Hu et al., SC '21; github.com/S-Lab-System-Group/HeliosData"
    wall_clock: ClassVar[bool] = True
    signature: ClassVar[tuple[str, ...]] = ("job_id", "vc", "gpu_num", "state", "submit_time")
    required: ClassVar[tuple[str, ...]] = ("job_id", "gpu_num", "submit_time", "duration")
    optional: ClassVar[tuple[str, ...]] = (
        "user",
        "vc",
        "node_num",
        "state",
        "start_time",
        "end_time",
        "queue",
    )
    columns: Columns = Columns("job_id", "submit_time", "duration", "gpu_num")
    class_column: ClassVar[str] = ""
    """Column with the source's own label of the job."""

    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth]:
        job_id = id_field(fields["job_id"], "job_id")
        text = reading.pool.text
        instant = reading.stamps.optional
        submit = reading.stamps.instant(fields["submit_time"], line, "submit_time")
        gpus = gpus_field(fields["gpu_num"], "gpu_num")
        nodes = optional_whole(fields["node_num"], "node_num", "node_num_invalid")
        start = instant(fields["start_time"], line, "start_time")
        ends = [instant(fields[name], line, name) for name in ("end_time", "stop_time") if name in fields]
        end = max((end for end in ends if end is not None), default=None)
        duration = self._duration(fields["duration"], start, end, line, reading)
        queue = start - submit if start is not None and start >= submit else None
        job = Job(
            job_id,
            line,
            submit,
            reading.pool.request(gpus, (), nodes or None),
            text(fields.get("vc", "")),
            text(fields["user"]),
            job_class=text(fields.get(self.class_column, "")),
        )
        return job, Truth(duration, text(status_word(fields["state"])), queue)

    def _duration(
        self, recorded: str, start: int | None, end: int | None, line: int, reading: Reading
    ) -> int | None:
        if start is None or end is None:
            return time_field(recorded, "duration", "duration_invalid") if recorded else None
        if recorded:
            stated = time_field(recorded, "duration", "duration_invalid")
            if abs(stated - (end - start)) > SECOND:
                message = (
                    f"duration is {recorded} s, but end - start is {(end - start) // SECOND} s, which is used"
                )
                reading.problems.note("duration_differs", line, column="duration", message=message)
        return end - start
