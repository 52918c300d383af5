"""Loading a trace: open, recognize, read, check, sort. The one way in for every format."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Final

from trainmaster.model.calendar import Calendar
from trainmaster.model.errors import FAILURES, InputError, TrainmasterError
from trainmaster.model.job import Deadline, Job
from trainmaster.model.plugin import failure
from trainmaster.model.text import is_clean, printable
from trainmaster.model.units import SECOND
from trainmaster.traces.dependencies import settle
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers import BUILT_IN, Reader, find_reader, readers
from trainmaster.traces.readers.base import Columns
from trainmaster.traces.schema import LIMIT_S, REQUIRED, delimiter_hint, format_seconds
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Trace, Truth
from trainmaster.traces.yielded import Yielded

FORMATS: Final[tuple[str, ...]] = tuple(BUILT_IN)
"""Formats that come with Trainmaster; other packages may add more."""


def load_trace(
    path: str | Path,
    *,
    format: str = "auto",
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
) -> Trace:
    """Read a job log of any known format.

    Args:
        path: the file, plain or gzip; a folder for formats that are one.
        format: "auto" recognizes it by its first characters; else one of `FORMATS`,
            or a Python file with a reader (``my_reader.py``, ``my_readers.py:MyReader``).
        strict: raise at the first row at fault instead of dropping and counting it.
        columns: for a CSV with names of its own: what it calls columns of the schema, such as
            ``{"submit_s": "Queued At"}``; the units are those of the schema.

    Returns:
        The trace; ``trace.problems`` tells which rows were dropped and why.

    Raises:
        InputError: the file as a whole is at fault (unreadable, cut off, of no known
            format, a column missing), or, when strict, a row.
    """
    path = Path(path)
    reader: Reader
    if columns:
        from trainmaster.traces.readers.normalized import NormalizedReader

        if format not in ("auto", "csv"):
            raise InputError(f"--columns is for plain CSV, not for {format}", mend="leave one of the two out")
        reader = NormalizedReader(columns)
    else:
        reader = _recognize(Source(path)) if format == "auto" else find_reader(format)
    return read_trace(reader, path, strict=strict)


def read_trace(reader: Reader, path: Path, *, strict: bool = False) -> Trace:
    """Read a job log with the given reader; else as `load_trace`."""
    source = Source(path)
    _refuse_folder_or_empty(source, reader)
    problems = Problems(str(path), strict=strict)
    with paused_collector():
        pairs = list(_checked(reader, source, problems))
        pairs.sort(key=lambda pair: pair[0].submit)  # stable: rows of one instant keep their order
        jobs = list(map(itemgetter(0), pairs))
        truths = list(map(itemgetter(1), pairs))
        calendar = _start_at_zero(jobs, source.zone) if reader.wall_clock else None
        jobs, truths = settle(jobs, truths, problems)
        _number(jobs)
    name = path.name.removesuffix(".gz").rsplit(".", 1)[0] or path.name
    return Trace(jobs, truths, printable(name), str(path), reader.name, problems, source.synthetic, calendar)


@contextmanager
def paused_collector() -> Iterator[None]:
    """No garbage collection inside: while a trace is built nothing is garbage, and looking costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _recognize(source: Source) -> Reader:
    path = source.path
    folder = path.is_dir()
    head = source.listing() if folder else source.head()
    if not folder and not head.strip():
        raise InputError("is empty", file=path, mend="give a trace with a header and rows")
    for reader in readers():
        if (reader.directory or not folder) and reader.detect(head, path):
            return reader
    if folder:
        raise InputError(
            "is a folder in which no trace is recognized",
            file=path,
            mend="give the file of the trace",
        )
    if "\0" in head:
        raise InputError("is not text", file=path, mend="unpack the archive and give the trace inside")
    hint = _delimiter_hint(head.splitlines()[0]) or (
        f"name it with --format ({', '.join(FORMATS)}); a CSV needs a header with {', '.join(REQUIRED)} "
        f"and duration_s, or names for them: --columns submit_s=NAME,num_gpus=NAME,..."
    )
    raise InputError("is of no known trace format", file=path, row=1, mend=hint)


def _delimiter_hint(header: str) -> str:
    """What to do about a header that is one of a known table, but for the delimiter."""
    from trainmaster.traces.readers.table import TableReader

    for reader in readers():
        if isinstance(reader, TableReader):
            names = reader.signature
            if hint := delimiter_hint(header, names, reader.delimiter, least=len(names)):
                return f"for a {reader.name} trace {hint}"
    return delimiter_hint(header)


def _refuse_folder_or_empty(source: Source, reader: Reader) -> None:
    if source.path.is_dir():
        if not reader.directory:
            raise InputError(
                "is a folder", file=source.path, mend=f"give the file of the {reader.name} trace"
            )
    elif not source.head().strip():
        raise InputError("is empty", file=source.path, mend="give a trace with rows")


def _checked(reader: Reader, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
    """The pairs that make sense; the others are dropped and counted. The same rules for every reader."""
    seen: set[str] = set()
    known: set[str] = set()
    for pair in _guarded(reader, source, problems):
        job, truth = pair
        duration = truth.duration
        if (
            job.request.gpus <= 0
            or (duration <= 0 if duration is not None else job.workload is None or not job.workload.model)
            or not 0 <= job.submit <= LIMIT_S * SECOND
            or job.id in seen
        ):
            problems.drop_fault(_fault(job, truth, reader.columns), job.sequence)
        elif (name := _unclean(job, truth, known)) is not None:
            message = f"{name[:60]!r} has a control character in it"
            problems.drop("name_invalid", job.sequence, message=message, mend="remove it from the name")
        else:
            seen.add(job.id)
            yield pair


def _guarded(reader: Reader, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
    """What the reader yields, its types looked at; whatever else it raises is one line that says where."""
    fault = Yielded().fault
    try:
        pairs = iter(reader.read(source, problems))
    except FAILURES as error:
        raise _failed(reader, source, failure(error)) from error
    while True:
        try:
            pair = next(pairs)
        except StopIteration:
            return
        except TrainmasterError:
            raise
        except FAILURES as error:
            raise _failed(reader, source, failure(error)) from error
        wrong = fault(pair)
        if wrong:
            raise _failed(reader, source, wrong)
        yield pair


def _failed(reader: Reader, source: Source, what: str) -> InputError:
    """A reader may be anybody's code."""
    return InputError(f"the reader {reader.name} fails: {what}", file=source.path, mend="mend the reader")


def _unclean(job: Job, truth: Truth, known: set[str]) -> str | None:
    """The first name of a job that would steer a terminal; `known` are those found to be clean."""
    if not is_clean(job.id):
        return job.id
    request, workload = job.request, job.workload
    names = (job.tenant, job.user, job.job_class, truth.status, *request.gpu_types)
    for name in names if workload is None else (*names, workload.model):
        if name not in known:
            if not is_clean(name):
                return name
            known.add(name)
    return None


def _fault(job: Job, truth: Truth, columns: Columns) -> RowFault:
    if not 0 <= job.submit <= LIMIT_S * SECOND:
        message = f"job {job.id!r} is submitted at {format_seconds(job.submit)} s"
        return RowFault("submit_invalid", message, column=columns.submit, mend="a time of at least 0")
    if job.request.gpus <= 0:
        message = f"job {job.id!r} asks for 0 GPUs"
        return RowFault("zero_gpus", message, column=columns.gpus, mend="leave out CPU-only jobs")
    if truth.duration is None and (job.workload is None or not job.workload.model):
        message = f"job {job.id!r} has no duration, nor a model with a profile that gives one"
        return RowFault("duration_missing", message, column=columns.duration, mend="a duration above 0")
    if truth.duration is not None and truth.duration <= 0:
        message = f"job {job.id!r} runs for {format_seconds(truth.duration)} s"
        return RowFault("duration_not_positive", message, column=columns.duration, mend="a duration above 0")
    return RowFault(
        "duplicate_id", f"job {job.id!r} was there before", column=columns.job_id, mend="unique ids"
    )


# The jobs are new and nobody else holds one yet: setting a field in place is no breach
# of their immutability, and three times as fast as building each of them again.
_set_field = object.__setattr__


def _start_at_zero(jobs: list[Job], zone: str) -> Calendar | None:
    """Move sorted wall-clock jobs so that the first is submitted at 0; returns the dates of that clock."""
    if not jobs:
        return None
    first = jobs[0].submit
    for job in jobs:
        _set_field(job, "submit", job.submit - first)
        if job.deadlines:
            moved = tuple(Deadline(deadline.at - first, deadline.value) for deadline in job.deadlines)
            _set_field(job, "deadlines", moved)
    return Calendar(first, zone)


def _number(jobs: list[Job]) -> None:
    for index, job in enumerate(jobs):
        if job.sequence != index:
            _set_field(job, "sequence", index)
