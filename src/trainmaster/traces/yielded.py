"""What a reader yields: a reader may be anybody's code, and all that follows trusts its types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.traces.trace import Truth

Test = Callable[[Any], bool]


def _whole(value: Any) -> bool:
    return type(value) is int


def _maybe_whole(value: Any) -> bool:
    return value is None or type(value) is int


def _maybe_number(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return type(value) is bool


def _all(kind: type) -> Test:
    return lambda value: isinstance(value, tuple) and all(isinstance(each, kind) for each in value)


def _pairs(value: Any) -> bool:
    return isinstance(value, tuple) and all(_TEXTS(pair) and len(pair) == 2 for pair in value)


_TEXTS, _DEADLINES = _all(str), _all(Deadline)

_WORDS: Final[dict[Test, str]] = {
    _whole: "a whole number (int)",
    _maybe_whole: "a whole number (int) or None",
    _number: "a number",
    _maybe_number: "a number or None",
    _text: "text (str)",
    _flag: "True or False",
    _TEXTS: "a tuple of str",
    _DEADLINES: "a tuple of Deadline",
    _pairs: "a tuple of (str, str)",
}

_FIELDS: Final[dict[type, dict[str, Test]]] = {
    Job: {
        "id": _text,
        "sequence": _whole,
        "submit": _whole,
        "tenant": _text,
        "user": _text,
        "priority": _whole,
        "declared": _maybe_whole,
        "deadlines": _DEADLINES,
        "depends_on": _TEXTS,
        "job_class": _text,
        "min_run": _maybe_whole,
        "not_before": _whole,
    },
    Request: {
        "gpus": _whole,
        "gpu_types": _TEXTS,
        "nodes": _maybe_whole,
        "min_gpus": _maybe_whole,
        "max_gpus": _maybe_whole,
        "preemptible": _flag,
        "pods": _maybe_whole,
        "labels": _pairs,
        "within": _text,
        "near": _text,
    },
    Workload: {"model": _text, "batch_size": _maybe_number, "iterations": _maybe_number},
    Deadline: {"at": _whole, "value": _number},
    Truth: {"duration": _maybe_whole, "status": _text, "queue": _maybe_whole},
}


class Yielded:
    """Looks at every pair of one reading; a request that many jobs share is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, Request] = {}

    def fault(self, pair: object) -> str:
        """What is wrong with it; empty when nothing is.

        >>> from trainmaster.model.job import Job, Request
        >>> Yielded().fault((Job("a", 2, 0, Request(1000)), Truth(5.0)))
        "job 'a': duration of Truth is 5.0, expected a whole number (int) or None"
        >>> Yielded().fault(None)
        'it yields None, expected (Job, Truth)'
        """
        if not (
            type(pair) is tuple and len(pair) == 2 and isinstance(pair[0], Job) and isinstance(pair[1], Truth)
        ):
            kinds = ", ".join(type(each).__name__ for each in pair) if isinstance(pair, tuple) else ""
            return f"it yields {f'({kinds})' if kinds else f'{pair!r:.60}'}, expected (Job, Truth)"
        job, truth = pair
        if id(job.request) in self._known and _usual(job, truth):
            return ""
        wrong = self._wrong(job, truth)
        return f"job {job.id!r:.60}: {wrong}" if wrong else ""

    def _wrong(self, job: Job, truth: Truth) -> str:
        request: object = job.request
        workload: object = job.workload
        if not isinstance(request, Request):
            return f"request is {request!r:.60}, expected a Request"
        if not (workload is None or isinstance(workload, Workload)):
            return f"workload is {workload!r:.60}, expected a Workload or None"
        wrong = _wrong_field(job)
        for part in (truth, request, workload, *(() if wrong else job.deadlines)):
            wrong = wrong or ("" if part is None else _wrong_field(part))
        if not wrong:
            # Kept, so that no other request can have its number.
            self._known[id(job.request)] = job.request
        return wrong


def _usual(job: Job, truth: Truth) -> bool:
    """Whether all but the request is plainly right: one step, since it is the whole cost for most rows."""
    workload = job.workload
    return (
        type(job.id) is type(job.tenant) is type(job.user) is type(job.job_class) is str
        and type(truth.status) is str
        and type(job.submit) is type(job.sequence) is type(job.priority) is type(job.not_before) is int
        and job.min_run is None
        and (truth.duration is None or type(truth.duration) is int)
        and (truth.queue is None or type(truth.queue) is int)
        and (job.declared is None or type(job.declared) is int)
        and (
            workload is None
            or (
                type(workload) is Workload
                and type(workload.model) is str
                and (workload.batch_size is None or type(workload.batch_size) is int)
                and (workload.iterations is None or type(workload.iterations) is float)
            )
        )
        and type(job.deadlines) is tuple
        and type(job.depends_on) is tuple
        and not job.depends_on
        and (not job.deadlines or _usual_deadlines(job.deadlines))
    )


def _usual_deadlines(deadlines: tuple[Deadline, ...]) -> bool:
    for deadline in deadlines:
        if not (
            type(deadline) is Deadline and type(deadline.at) is int and type(deadline.value) in (int, float)
        ):
            return False
    return True


def _wrong_field(part: object) -> str:
    kind = next(kind for kind in _FIELDS if isinstance(part, kind))
    for name, right in _FIELDS[kind].items():
        value = getattr(part, name)
        if not right(value):
            return f"{name} of {kind.__name__} is {value!r:.60}, expected {_WORDS[right]}"
    return ""
