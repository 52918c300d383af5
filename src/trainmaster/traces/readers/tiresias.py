"""The job files of the Tiresias simulator and of those built on it: Muri and Chronus.

All have ``job_id,num_gpu,submit_time,iterations,model_name,…,duration,interval``. The
unit of time is not written in the file: seconds for Tiresias, milliseconds for Muri
(known by its resource times), minutes for Chronus (known by its expected times).
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.model.job import Deadline, Job
from trainmaster.model.units import SECOND
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.readers.table import Reading, TableReader, id_field
from trainmaster.traces.schema import (
    deadline_fields,
    flag_field,
    gpus_field,
    number_field,
    time_field,
    workload_fields,
)
from trainmaster.traces.trace import Truth


class TiresiasReader(TableReader):
    """Times in seconds."""

    name: ClassVar[str] = "tiresias"
    citation: ClassVar[str] = "Gu et al., NSDI '19; github.com/SymbioticLab/Tiresias"
    signature: ClassVar[tuple[str, ...]] = ("job_id", "num_gpu", "submit_time", "iterations", "duration")
    columns: Columns = Columns("job_id", "submit_time", "duration", "num_gpu")
    required: ClassVar[tuple[str, ...]] = ("job_id", "num_gpu", "submit_time", "duration")
    optional: ClassVar[tuple[str, ...]] = ("model_name", "batch_size", "iterations", "user")
    unit: ClassVar[int] = SECOND
    """Nanoseconds in one unit of the file's times."""

    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth]:
        submit = time_field(fields["submit_time"], "submit_time", "submit_invalid", self.unit)
        job = Job(
            id_field(fields["job_id"], "job_id"),
            line,
            submit,
            reading.pool.request(gpus_field(fields["num_gpu"], "num_gpu")),
            tenant=reading.pool.text(fields["user"]),
            workload=workload_fields(
                reading.pool.text(fields["model_name"]), fields["batch_size"], fields["iterations"]
            ),
            deadlines=self.deadlines(fields, submit),
            job_class=reading.pool.text(fields.get("job_type", "")),
        )
        return job, Truth(time_field(fields["duration"], "duration", "duration_invalid", self.unit))

    def deadlines(self, fields: dict[str, str], submit: int) -> tuple[Deadline, ...]:
        """Deadlines of a row; none in this format."""
        return ()


class MuriReader(TiresiasReader):
    """Times in milliseconds; the resource times of one iteration are not used."""

    name: ClassVar[str] = "muri"
    citation: ClassVar[str] = "Zhao et al., SIGCOMM '22; github.com/Rivendile/Muri"
    signature: ClassVar[tuple[str, ...]] = ("job_id", "num_gpu", "submit_time", "duration", "resource_time_0")
    unit: ClassVar[int] = SECOND // 1000


class ChronusReader(TiresiasReader):
    """Times in minutes; expected times count from submission, '-' between soft deadlines.

    Its `user` column holds a virtual cluster, so it is the tenant. A job with
    ``best_effort`` set has no deadline, whatever its expected time says.
    """

    name: ClassVar[str] = "chronus"
    citation: ClassVar[str] = "Gao et al., SoCC '21; github.com/S-Lab-System-Group/ChronusArtifact"
    signature: ClassVar[tuple[str, ...]] = (
        "job_id",
        "num_gpu",
        "submit_time",
        "duration",
        "expect_time_list",
    )
    optional: ClassVar[tuple[str, ...]] = (
        *TiresiasReader.optional,
        "expect_time_list",
        "expect_value_list",
        "best_effort",
        "job_type",
    )
    unit: ClassVar[int] = 60 * SECOND

    def deadlines(self, fields: dict[str, str], submit: int) -> tuple[Deadline, ...]:
        best_effort = fields["best_effort"]
        if best_effort and flag_field(best_effort, "best_effort", "best_effort_invalid"):
            return ()
        if not fields["expect_time_list"]:
            return ()
        times = [
            submit + time_field(part, "expect_time_list", "deadline_invalid", self.unit)
            for part in fields["expect_time_list"].split("-")
        ]
        values = fields["expect_value_list"]
        worth = [
            number_field(part, "expect_value_list", "deadline_invalid")
            for part in (values.split("-") if values else ["1"] * len(times))
        ]
        return deadline_fields(times, worth, "expect_time_list", "expect_value_list")
