"""Microsoft ITP (2021), one file a cluster, and the ElasticFlow variants of it.

Times are seconds since collection began; `deadline` is on the same clock.
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.model.job import Job
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.readers.table import Reading, TableReader, id_field
from trainmaster.traces.schema import deadline_fields, gpus_field, time_field, workload_fields
from trainmaster.traces.trace import Truth


class ItpReader(TableReader):
    """One row is one job."""

    name: ClassVar[str] = "itp"
    citation: ClassVar[str] = "Gu et al., ASPLOS '23; github.com/microsoft/elasticflow-traces"
    signature: ClassVar[tuple[str, ...]] = ("job_id", "submission_time", "duration", "num_gpu")
    columns: Columns = Columns("job_id", "submission_time", "duration", "num_gpu")
    required: ClassVar[tuple[str, ...]] = signature
    optional: ClassVar[tuple[str, ...]] = ("model_name", "batch_size", "num_iteration", "deadline")

    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth]:
        text = fields["deadline"]
        deadline = [time_field(text, "deadline", "deadline_invalid")] if text else []
        job = Job(
            id_field(fields["job_id"], "job_id"),
            line,
            time_field(fields["submission_time"], "submission_time", "submit_invalid"),
            reading.pool.request(gpus_field(fields["num_gpu"], "num_gpu")),
            workload=workload_fields(
                reading.pool.text(fields["model_name"]), fields["batch_size"], fields["num_iteration"]
            ),
            deadlines=deadline_fields(deadline, [1.0] * len(deadline), "deadline", ""),
        )
        return job, Truth(time_field(fields["duration"], "duration", "duration_invalid"))
