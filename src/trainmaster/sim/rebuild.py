"""The state of an engine, worked out again from the event log of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import groupby
from typing import Any

from trainmaster.core.engine import Engine
from trainmaster.model.action import Wake
from trainmaster.model.encoding import EVENTS
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.event import (
    CheckpointWritten,
    Event,
    Lost,
    NodeDown,
    NodeDrained,
    NodeUp,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job


def rebuild(
    lines: Iterable[str],
    engine: Engine,
    jobs: Mapping[str, Job],
    *,
    run: int = 0,
    until: int | None = None,
) -> Engine:
    """Let a fresh engine go through what an event log tells.

    Timers are not in the log: they come when the engine asks for them, as it did then.

    Args:
        lines: of events.jsonl.
        engine: a fresh one, with a fresh policy and predictor.
        jobs: of the trace, by id.
        run: the number of the run.
        until: the last instant that happens, ns; None = that of the last event.

    Returns the engine, in the state in which the one of the run was.

    Raises:
        InputError: a line can't be read, or names a job or a node that isn't there.
    """
    batches = list(_batches(lines, engine, jobs, run))
    end = until if until is not None else max((at for at, _ in batches), default=0)
    timers: list[tuple[int, int, Timer]] = []
    count = 0
    position = 0
    while True:
        logged = batches[position][0] if position < len(batches) else None
        timed = timers[0][0] if timers else None
        now = min((at for at in (logged, timed) if at is not None), default=None)
        if now is None or now > end:
            return engine
        events: list[Event] = []
        if logged == now:
            events = batches[position][1]
            position += 1
        due: list[Timer] = []
        while timers and timers[0][0] == now:
            due.append(heappop(timers)[2])
        for action in engine.handle(now, [*events, *due]):
            if isinstance(action, Wake):
                count += 1
                heappush(timers, (action.at, count, Timer(action.job_id, action.version)))


def _batches(
    lines: Iterable[str], engine: Engine, jobs: Mapping[str, Job], run: int
) -> Iterator[tuple[int, list[Event]]]:
    """The events that were handed over together. What follows on actions at the same instant came
    of them, and was handed over afterwards. Actions of which nothing is told before came of timers."""
    entries = (entry for entry in _entries(lines) if entry["run"] == run)
    told = -1
    for (at, is_event), group in groupby(entries, key=lambda entry: (entry["t_ns"], "event" in entry)):
        if is_event:
            yield at, [_event(entry, engine, jobs) for entry in group]
        elif told != at:
            yield at, []
        told = at


def _entries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict) or not {"run", "t_ns"} <= entry.keys():
            raise InputError("is no line of an event log", row=number, mend="give an events.jsonl")
        entry["line"] = number
        yield entry


def _event(entry: Mapping[str, Any], engine: Engine, jobs: Mapping[str, Job]) -> Event:
    row = entry["line"]
    kind = EVENTS.get(entry["event"])
    if kind is None:
        mend = nearest(str(entry["event"]), EVENTS)
        raise InputError(f"unknown event {entry['event']!r:.60}", row=row, column="event", mend=mend)
    if issubclass(kind, NodeDown | NodeDrained | NodeUp):
        names = engine.state.cluster.names
        if entry["node"] not in names:
            what = f"there is no node {entry['node']!r:.60}"
            raise InputError(what, row=row, column="node", mend=nearest(str(entry["node"]), names))
        return kind(names[entry["node"]])
    name = entry["job"]
    if kind is Submitted:
        if name not in jobs:
            raise InputError(f"there is no job {name!r:.60}", row=row, column="job", mend="give its trace")
        return Submitted(jobs[name])
    if kind is CheckpointWritten:
        return CheckpointWritten(name, entry["progress_ns"])
    if kind is Lost:
        return Lost(name, entry["kept_ns"], entry["reason"])
    made: Any = kind
    return made(name, entry["reason"]) if "reason" in entry else made(name)  # type: ignore[no-any-return]
