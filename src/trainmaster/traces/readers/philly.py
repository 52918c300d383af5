"""Microsoft Philly (2017): ``cluster_job_log``, a JSON list of jobs with their attempts.

- The run time of a job is the sum of its attempts, without the waits between them; its
  wait is the time to the first start. An attempt without a start or an end (a logging
  error, or still running) is left out and noted; a job without any whole attempt, or
  none at all, is dropped.
- The GPUs of a job are the most that one of its attempts used.
- Times are Pacific local time without a zone, and daylight saving ends inside the trace
  (2017-11-05, 02:00): spans are taken between true instants, not between local texts.
  01:00 to 01:59 of that night exists twice; such a time is taken as the first (daylight)
  one and noted as ``ambiguous_time``, as the second one where an attempt would else end
  before it starts.
- Where ``cluster_machine_list`` lies beside the log, a job that used more GPUs of a
  machine than listed is noted as ``machine_list_contradiction`` and kept: the log is a
  record of what ran. `machine_gpus` gives the sizes of the machines, by the list or by
  the larger of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.model.units import GPU, HOUR
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Columns, Reader
from trainmaster.traces.readers.table import Pool
from trainmaster.traces.schema import status_word, whole_field
from trainmaster.traces.source import Source
from trainmaster.traces.stamps import Stamps
from trainmaster.traces.trace import Truth

_MACHINE_LISTS: Final = ("cluster_machine_list", "cluster_machine_list.csv", "cluster_machine_list.csv.gz")


class PhillyReader(Reader):
    """One record of the list is one job; the virtual cluster is the tenant."""

    name: ClassVar[str] = "philly"
    citation: ClassVar[str] = "Jeon et al., ATC '19; github.com/msr-fiddle/philly-traces"
    wall_clock: ClassVar[bool] = True
    columns: Columns = Columns("jobid", "submitted_time", "attempts", "attempts")

    def detect(self, head: str, path: Path) -> bool:
        return head.lstrip().startswith("[") and '"jobid"' in head

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        listed = _machine_list(source)
        log = _Log(Stamps(source, problems, _pacific()), problems, Pool(), listed)
        for number, record in enumerate(_records(source), 1):
            problems.rows += 1
            try:
                pair = log.job(record, number)
            except RowFault as fault:
                problems.drop_fault(fault, number)
                continue
            yield pair


def machine_gpus(path: str | Path, *, trust: str = "list") -> dict[str, int]:
    """GPUs of each machine of a Philly log, by name.

    Args:
        path: the ``cluster_job_log``; the machine list must lie beside it.
        trust: "list" takes the list as it is; "larger" the larger of the list and what
            the log shows, and so counts machines that only the log knows.

    Raises:
        InputError: there is no machine list, or a file is at fault.
    """
    if trust not in ("list", "larger"):
        raise InputError(f"trust is {trust!r}", mend="'list' or 'larger'")
    source = Source(Path(path))
    machines = _machine_list(source)
    if machines is None:
        raise InputError("there is no machine list beside it", file=path, mend=f"add {_MACHINE_LISTS[0]}")
    if trust == "larger":
        for record in _records(source):
            for machine, gpus in _used(_attempts(record)).items():
                machines[machine] = max(machines.get(machine, 0), gpus)
    return dict(sorted(machines.items()))


class _Log:
    """Turns records into jobs."""

    def __init__(self, stamps: Stamps, problems: Problems, pool: Pool, listed: dict[str, int] | None) -> None:
        self._stamps = stamps
        self._problems = problems
        self._pool = pool
        self._listed = listed or {}

    def job(self, record: Any, number: int) -> tuple[Job, Truth]:
        if not isinstance(record, dict):
            raise RowFault("record_invalid", "is not a JSON object")
        job_id = _text(record, "jobid")
        if not job_id:
            raise RowFault("id_missing", "is empty", column="jobid")
        submit = self._stamps.instant(_text(record, "submitted_time"), number, "submitted_time")
        attempts = _attempts(record)
        if not attempts:
            raise RowFault("no_attempts", f"job {job_id!r} was never started", column="attempts")
        spans = [span for attempt in attempts if (span := self._span(attempt, number))]
        self._compare_with_list(attempts, job_id, number)
        first_start = min((start for start, _ in spans), default=-1)
        job = Job(
            job_id,
            number,
            submit,
            self._pool.request(max(_gpu_count(attempt) for attempt in attempts) * GPU),
            self._pool.text(_text(record, "vc")),
            self._pool.text(_text(record, "user")),
        )
        return job, Truth(
            sum(end - start for start, end in spans) if spans else None,
            self._pool.text(status_word(_text(record, "status"))),
            first_start - submit if first_start >= submit else None,
        )

    def _span(self, attempt: dict[str, Any], number: int) -> tuple[int, int] | None:
        start = self._stamps.optional(_text(attempt, "start_time"), number, "start_time")
        end = self._stamps.optional(_text(attempt, "end_time"), number, "end_time")
        if start is None or end is None:
            message = "an attempt without start or end time is left out"
            self._problems.note("attempt_time_missing", number, column="attempts", message=message)
            return None
        if -HOUR <= end - start < 0 and self._stamps.is_ambiguous(_text(attempt, "end_time")):
            end += HOUR
        if end < start:
            raise RowFault("duration_not_positive", "an attempt ends before it starts", column="attempts")
        return start, end

    def _compare_with_list(self, attempts: list[dict[str, Any]], job_id: str, number: int) -> None:
        for machine, used in _used(attempts).items():
            listed = self._listed.get(machine)
            if listed is not None and used > listed:
                message = f"{machine} has {listed} GPUs by the machine list, job {job_id!r} used {used} of it"
                self._problems.note("machine_list_contradiction", number, column="attempts", message=message)
                return


def _records(source: Source) -> list[Any]:
    with source.text() as text:
        try:
            records = json.load(text)
        except json.JSONDecodeError as error:
            raise InputError(
                f"is not JSON: {error.msg}", file=source.path, row=error.lineno, mend="fetch it again"
            ) from error
        except (RecursionError, ValueError) as error:
            raise InputError("is not JSON that can be read", file=source.path) from error
    if not isinstance(records, list):
        raise InputError("is not a JSON list of jobs", file=source.path, mend="give cluster_job_log")
    return records


def _attempts(record: Any) -> list[dict[str, Any]]:
    attempts = record.get("attempts") if isinstance(record, dict) else None
    if not isinstance(attempts, list):
        return []
    return [attempt for attempt in attempts if isinstance(attempt, dict)]


def _details(attempt: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Machine and GPU names of each part of an attempt."""
    details = attempt.get("detail")
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and isinstance(detail.get("gpus"), list):
            yield _text(detail, "ip"), detail["gpus"]


def _gpu_count(attempt: dict[str, Any]) -> int:
    return sum(len(gpus) for _, gpus in _details(attempt))


def _used(attempts: list[dict[str, Any]]) -> dict[str, int]:
    """GPUs that each machine must have for these attempts: "gpu7" proves eight."""
    used: dict[str, int] = {}
    for attempt in attempts:
        for machine, gpus in _details(attempt):
            numbers = [
                int(digits[:6]) + 1 for gpu in gpus if (digits := str(gpu).removeprefix("gpu")).isdecimal()
            ]
            used[machine] = max(used.get(machine, 0), len(gpus), *numbers)
    return used


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return " ".join(str(value).split()) if isinstance(value, (str, int)) else ""


def _machine_list(source: Source) -> dict[str, int] | None:
    for name in _MACHINE_LISTS:
        path = source.path.parent / name
        if path.is_file():
            machines = {}
            for line, row in source.table(path=path):
                if len(row) < 2 or (line == 1 and not row[1].strip().isdecimal()):
                    continue
                try:
                    machines[row[0].strip()] = whole_field(row[1], "number of GPUs", "", at_least=0)
                except RowFault as fault:
                    raise InputError(fault.message, file=path, row=line, column=fault.column) from fault
            return machines
    return None


def _pacific() -> tzinfo:
    try:
        return ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError as error:
        raise InputError(
            "Philly times need the time zone America/Los_Angeles, which this system lacks",
            mend="pip install tzdata",
        ) from error
