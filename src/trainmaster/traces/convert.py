"""Writing the normalized CSV."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from trainmaster.model.errors import InputError, OutputError
from trainmaster.model.job import Job
from trainmaster.traces.schema import format_gpus, format_number, format_seconds
from trainmaster.traces.trace import Trace, Truth


def _optional_seconds(ns: int | None) -> str:
    return "" if ns is None else format_seconds(ns)


def _optional_gpus(milli: int | None) -> str:
    return "" if milli is None else format_gpus(milli)


def _optional_number(value: float | None) -> str:
    return "" if value is None else format_number(value)


_ALWAYS: Final = ("job_id", "submit_s", "duration_s", "num_gpus")

_FIELDS: Final[dict[str, Callable[[Job, Truth], str]]] = {
    "job_id": lambda job, truth: job.id,
    "submit_s": lambda job, truth: format_seconds(job.submit),
    "duration_s": lambda job, truth: _optional_seconds(truth.duration),
    "num_gpus": lambda job, truth: format_gpus(job.request.gpus),
    "tenant": lambda job, truth: job.tenant,
    "user": lambda job, truth: job.user,
    "status": lambda job, truth: truth.status,
    "queue_s": lambda job, truth: _optional_seconds(truth.queue),
    "requested_walltime_s": lambda job, truth: _optional_seconds(job.declared),
    "priority": lambda job, truth: str(job.priority) if job.priority else "",
    "min_gpus": lambda job, truth: _optional_gpus(job.request.min_gpus),
    "max_gpus": lambda job, truth: _optional_gpus(job.request.max_gpus),
    "preemptible": lambda job, truth: "" if job.request.preemptible else "false",
    "depends_on": lambda job, truth: ";".join(job.depends_on),
    "deadlines_s": lambda job, truth: "-".join(format_seconds(deadline.at) for deadline in job.deadlines),
    "deadline_values": lambda job, truth: "-".join(
        format_number(deadline.value) for deadline in job.deadlines
    ),
    "model": lambda job, truth: job.workload.model if job.workload else "",
    "batch_size": lambda job, truth: _optional_number(job.workload.batch_size if job.workload else None),
    "iterations": lambda job, truth: _optional_number(job.workload.iterations if job.workload else None),
    "gpu_type": lambda job, truth: "|".join(job.request.gpu_types),
    "num_nodes": lambda job, truth: "" if job.request.nodes is None else str(job.request.nodes),
    "job_class": lambda job, truth: job.job_class,
}


def write_csv(trace: Trace, path: str | Path) -> None:
    """Write a trace in the normalized schema; columns that no job fills are left out.

    The same trace gives the same bytes, with and without ``.gz`` (no time stamp inside).
    The file appears complete or not at all: it is written under a temporary name first.

    Raises:
        InputError: the path names no regular file.
        OutputError: the file can't be written.
    """
    path = Path(path)
    pairs = list(zip(trace.jobs, trace.truths, strict=True))
    columns = {
        name: value_of
        for name, value_of in _FIELDS.items()
        if name in _ALWAYS or any(value_of(job, truth) for job, truth in pairs)
    }
    if trace.synthetic:
        columns["synthetic"] = lambda job, truth: "1"
    with replacing(path) as raw, _packed(raw, path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        values = tuple(columns.values())
        writer.writerows([value_of(job, truth) for value_of in values] for job, truth in pairs)
        text.detach()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when all went well, and leaves no trace when not."""
    if not path.name:
        raise InputError("names no file", file=path, mend="give a file to write")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError("is not a regular file, and is left alone", file=path, mend="name another file")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with unfinished.open("wb") as raw:
                yield raw
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _packed(raw: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        yield packed  # type: ignore[misc]
