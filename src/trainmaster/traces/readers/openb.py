"""Alibaba openb (2023): ``openb_pod_list_*.csv`` of cluster-trace-gpu-v2023.

A pod asks ``num_gpu`` GPUs, of each the share ``gpu_milli`` / 1000. It runs from
`scheduled_time` to `deletion_time`; a pod that was never scheduled is dropped.
Times are seconds on the trace's own clock.
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.model.job import Job
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.readers.table import Reading, TableReader, id_field
from trainmaster.traces.schema import gpu_types_field, status_word, time_field, whole_field
from trainmaster.traces.trace import Truth


class OpenbReader(TableReader):
    """One row is one pod; its QoS (LS, BE, …) is the class."""

    name: ClassVar[str] = "openb"
    citation: ClassVar[str] = "Weng et al., ATC '23; github.com/alibaba/clusterdata, cluster-trace-gpu-v2023"
    signature: ClassVar[tuple[str, ...]] = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
    columns: Columns = Columns("name", "creation_time", "deletion_time", "num_gpu")
    required: ClassVar[tuple[str, ...]] = (*signature, "scheduled_time")
    optional: ClassVar[tuple[str, ...]] = ("gpu_spec", "qos", "pod_phase")

    def record(self, fields: dict[str, str], line: int, reading: Reading) -> tuple[Job, Truth]:
        name = id_field(fields["name"], "name")
        created = time_field(fields["creation_time"], "creation_time", "submit_invalid")
        count = whole_field(fields["num_gpu"], "num_gpu", "gpus_invalid", at_least=0)
        share = whole_field(fields["gpu_milli"], "gpu_milli", "gpus_invalid", at_least=0) if count else 0
        scheduled = _time(fields["scheduled_time"], "scheduled_time")
        deleted = _time(fields["deletion_time"], "deletion_time")
        text = reading.pool.text
        job = Job(
            name,
            line,
            created,
            reading.pool.request(count * share, gpu_types_field(fields["gpu_spec"])),
            job_class=text(fields["qos"]),
        )
        status = text(status_word(fields["pod_phase"]))
        if scheduled is None:
            return job, Truth(None, status)
        duration = None if deleted is None else deleted - scheduled
        return job, Truth(duration, status, scheduled - created if scheduled >= created else None)


def _time(text: str, column: str) -> int | None:
    return time_field(text, column, "duration_invalid") if text else None
