"""Our own normalized CSV, plain or gzip: the schema of `trainmaster.traces.schema`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.traces.problems import Problems, RowFault
from trainmaster.traces.readers.base import Columns, Reader
from trainmaster.traces.schema import (
    COLUMNS,
    REQUIRED,
    deadline_fields,
    delimiter_hint,
    flag_field,
    found_hint,
    gpu_types_field,
    gpus_field,
    number_field,
    parse_time,
    time_field,
    whole_field,
    workload_fields,
)
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Truth

_REQUEST_COLUMNS = ("num_gpus", "gpu_type", "num_nodes", "min_gpus", "max_gpus", "preemptible")
_RARE_COLUMNS = (
    "priority",
    "requested_walltime_s",
    "model",
    "batch_size",
    "iterations",
    "deadline_s",
    "deadlines_s",
    "deadline_values",
    "depends_on",
    "job_class",
)
_Rare = tuple[int, int | None, Workload | None, tuple[Deadline, ...], tuple[str, ...], str]
_NOTHING_RARE: _Rare = (0, None, None, (), (), "")


class NormalizedReader(Reader):
    """The normalized CSV.

    Args:
        names: what this file calls columns of the schema, where it has names of its own.

    Raises:
        InputError: a column that the schema doesn't have.
    """

    name: ClassVar[str] = "csv"
    citation: ClassVar[str] = "trainmaster.traces.schema.COLUMNS"
    columns: Columns = Columns("job_id", "submit_s", "duration_s", "num_gpus")

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        for name in self._names:
            if name not in COLUMNS:
                raise InputError(f"--columns: there is no column {name!r}", mend=nearest(name, COLUMNS))
        self.columns = Columns(*map(self._own, type(self).columns))

    def _own(self, name: str) -> str:
        """What the file calls a column of the schema."""
        return self._names.get(name, name)

    def detect(self, head: str, path: Path) -> bool:
        names = {name.strip().strip('"') for name in head.lstrip().split("\n", 1)[0].split(",")}
        return not names.isdisjoint(("submit_s", "duration_s"))  # one is enough to tell which is missing

    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        table = source.table(drop=problems.drop_unread)
        first_line, names = next(table, (0, []))
        at = self._places([name.strip() for name in names], source, first_line, problems)
        width = len(names)
        request_of = _requests(at)
        rare_of = _rare(at)
        truth_of = _truths(at, problems)
        at_id, at_submit = at["job_id"], at["submit_s"]
        at_tenant, at_user, at_synthetic = at.get("tenant"), at.get("user"), at.get("synthetic")
        known = {"": ""}
        row_count = 0
        try:
            for line, row in table:
                row_count += 1
                try:
                    if len(row) != width:
                        raise RowFault("field_count", f"{len(row)} fields, the header has {width}")
                    if not (job_id := row[at_id].strip()):
                        raise RowFault("id_missing", "is empty", column="job_id")
                    try:
                        submit = parse_time(row[at_submit])
                    except (ValueError, OverflowError):
                        submit = time_field(row[at_submit], "submit_s", "submit_invalid")
                    request = request_of(row)
                    rare = rare_of(row) if rare_of else _NOTHING_RARE
                    truth = truth_of(row, line)
                except RowFault as fault:
                    fault.column = fault.column and self._own(fault.column)
                    problems.drop_fault(fault, line)
                    continue
                tenant = "" if at_tenant is None else known.setdefault(row[at_tenant], row[at_tenant])
                user = "" if at_user is None else known.setdefault(row[at_user], row[at_user])
                if at_synthetic is not None and row[at_synthetic] not in ("", "0"):
                    source.synthetic = True
                yield Job(job_id, line, submit, request, tenant, user, *rare), truth
        finally:
            problems.rows += row_count

    def _places(self, names: list[str], source: Source, line: int, problems: Problems) -> dict[str, int]:
        """Place of each known column; raises `InputError` when the header is at fault."""
        for name in names:
            if names.count(name) > 1 and name:
                raise InputError("the column is there twice", file=source.path, row=line, column=name)
        at = {name: names.index(self._own(name)) for name in COLUMNS if self._own(name) in names}
        for name in (*REQUIRED, *([] if "model" in at else ["duration_s"]), *self._names):
            if name not in at:
                raise InputError(
                    "the column is missing",
                    file=source.path,
                    row=line or 1,
                    column=self._own(name),
                    mend=delimiter_hint(",".join(names), [*COLUMNS, *self._names.values()])
                    or found_hint(self._own(name), names, f"--columns {name}="),
                )
        used = {names[place] for place in at.values()}
        for name in names:
            if name not in used:
                problems.note("unknown_column", line, column=name, message="the column is ignored")
        return at


def _requests(at: dict[str, int]) -> Callable[[list[str]], Request]:
    """Request of a row; equal requests are the same object, and each text is parsed once."""
    present = [name for name in _REQUEST_COLUMNS if name in at]
    key_of = itemgetter(*(at[name] for name in present))
    by_text: dict[object, Request] = {}
    by_value: dict[Request, Request] = {}

    def request_of(row: list[str]) -> Request:
        key = key_of(row)
        request = by_text.get(key)
        if request is None:
            request = _parse_request({name: row[at[name]].strip() for name in present})
            request = by_text[key] = by_value.setdefault(request, request)
        return request

    return request_of


def _parse_request(fields: dict[str, str]) -> Request:
    gpus = gpus_field(fields["num_gpus"])
    nodes = fields.get("num_nodes")
    fewest, most = fields.get("min_gpus"), fields.get("max_gpus")
    preemptible = fields.get("preemptible")
    request = Request(
        gpus=gpus,
        gpu_types=gpu_types_field(fields.get("gpu_type", "")),
        nodes=whole_field(nodes, "num_nodes", "num_nodes_invalid", at_least=1) if nodes else None,
        min_gpus=gpus_field(fewest, "min_gpus", "min_gpus_invalid") if fewest else None,
        max_gpus=gpus_field(most, "max_gpus", "max_gpus_invalid") if most else None,
        preemptible=flag_field(preemptible, "preemptible", "preemptible_invalid") if preemptible else True,
    )
    if request.min_gpus is not None and not 0 < request.min_gpus <= gpus:
        raise RowFault("min_gpus_invalid", "min_gpus is not between 0 and num_gpus", column="min_gpus")
    if request.max_gpus is not None and request.max_gpus < gpus:
        raise RowFault("max_gpus_invalid", "max_gpus is below num_gpus", column="max_gpus")
    return request


def _rare(at: dict[str, int]) -> Callable[[list[str]], _Rare] | None:
    """What few traces have: priority, declared time, workload, deadlines, dependencies, class."""
    present = [(name, at[name]) for name in _RARE_COLUMNS if name in at]
    if not present:
        return None
    known = {"": ""}

    def rare_of(row: list[str]) -> _Rare:
        fields = {name: text for name, index in present if (text := row[index].strip())}
        if not fields:
            return _NOTHING_RARE
        get = fields.get
        declared = get("requested_walltime_s")
        label, model = get("job_class", ""), get("model", "")
        return (
            whole_field(fields["priority"], "priority", "priority_invalid") if "priority" in fields else 0,
            _positive_time(declared, "requested_walltime_s", "walltime_invalid") if declared else None,
            workload_fields(known.setdefault(model, model), get("batch_size", ""), get("iterations", "")),
            _deadlines(get("deadline_s", ""), get("deadlines_s", ""), get("deadline_values", "")),
            tuple(name for part in get("depends_on", "").split(";") if (name := part.strip())),
            known.setdefault(label, label),
        )

    return rare_of


def _positive_time(text: str, column: str, reason: str) -> int:
    ns = time_field(text, column, reason)
    if ns <= 0:
        raise RowFault(reason, f"{text} s is not positive", column=column)
    return ns


def _deadlines(single: str, many: str, values: str) -> tuple[Deadline, ...]:
    if not many and single:
        return deadline_fields(
            [time_field(single, "deadline_s", "deadline_invalid")], [1.0], "deadline_s", ""
        )
    if not many:
        return ()
    times = [time_field(part, "deadlines_s", "deadline_invalid") for part in many.split("-")]
    worth = [
        number_field(part, "deadline_values", "deadline_invalid")
        for part in (values.split("-") if values else ["1"] * len(times))
    ]
    return deadline_fields(times, worth, "deadlines_s", "deadline_values")


def _truths(at: dict[str, int], problems: Problems) -> Callable[[list[str], int], Truth]:
    at_duration, at_status, at_queue = at.get("duration_s"), at.get("status"), at.get("queue_s")
    known = {"": ""}

    def truth_of(row: list[str], line: int) -> Truth:
        text = "" if at_duration is None else row[at_duration]
        duration: int | None
        try:
            duration = parse_time(text)
        except (ValueError, OverflowError):
            duration = time_field(text, "duration_s", "duration_invalid") if text.strip() else None
        status = "" if at_status is None else known.setdefault(row[at_status], row[at_status])
        queue = None if at_queue is None else _queue(row[at_queue], line, problems)
        return Truth(duration, status, queue)

    return truth_of


def _queue(text: str, line: int, problems: Problems) -> int | None:
    """The recorded wait is only shown, never replayed: an odd one is noted and the row kept."""
    try:
        wait = parse_time(text)
    except (ValueError, OverflowError):
        wait = -1
    if wait >= 0:
        return wait
    if text.strip():
        problems.note("queue_invalid", line, column="queue_s", message=f"{text!r} is no wait")
    return None
