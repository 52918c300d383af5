"""Acme (Shanghai AI Laboratory 2023): ``trace_seren.csv`` and ``trace_kalos.csv``.

Times carry their zone. Kalos's `duration` counts the wait as well in places, and a job
there holds its GPUs until `stop_time`; the run time is therefore the later of `end_time`
and `stop_time`, less `start_time`, as for Helios.
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.traces.readers.helios import HeliosReader


class AcmeReader(HeliosReader):
    """One row is one job; its workload type (pretraining, evaluation, …) is the class."""

    name: ClassVar[str] = "acme"
    citation: ClassVar[str] = "Hu et al., NSDI '24; huggingface.co/datasets/Qinghao/AcmeTrace"
    signature: ClassVar[tuple[str, ...]] = ("job_id", "gpu_num", "type", "state", "submit_time")
    optional: ClassVar[tuple[str, ...]] = (
        "user",
        "node_num",
        "type",
        "state",
        "start_time",
        "end_time",
        "stop_time",
        "queue",
    )
    class_column: ClassVar[str] = "type"
