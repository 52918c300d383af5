"""The virtual cluster: carries out actions by announcing what will come of them.

Only this file and the oracle know how long jobs really run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from trainmaster.model.action import Action, Kill, Start, Stop, Wake
from trainmaster.model.allocation import Allocation
from trainmaster.model.encoding import build_event, plain_event
from trainmaster.model.event import (
    CheckpointWritten,
    Finished,
    Lost,
    NodeDown,
    NodeDrained,
    NodeUp,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job
from trainmaster.model.units import to_ns
from trainmaster.sim.clock import ALWAYS, Clock, Ticket
from trainmaster.sim.options import Costs

NOT_RUNNING = 1 << 62
"""An instant that never comes: the process makes no progress."""


class _Process:
    """A job that was started at least once and has not finished."""

    __slots__ = ("allocation", "began", "done", "job", "saved", "speed", "ticket", "work")

    def __init__(self, job: Job, work: int) -> None:
        self.job = job
        self.work = work
        self.done = self.saved = 0
        self.began = NOT_RUNNING
        self.speed = 1.0
        self.allocation: Allocation | None = None
        self.ticket = Ticket()

    def progress(self, now: int) -> int:
        """Work done by `now`, ns at reference speed."""
        elapsed = max(0, now - self.began)
        return min(self.work, self.done + (elapsed if self.speed == 1.0 else int(elapsed * self.speed)))

    @property
    def ends_at(self) -> int:
        """When it will have done its work, if it runs on."""
        left = self.work - self.done
        return self.began + (left if self.speed == 1.0 else ceil(left / self.speed))


class VirtualCluster:
    """Executor of the simulator.

    Args:
        clock: where outcomes are announced.
        duration: true run time of a job at reference speed, ns.
        costs: of starting and stopping.
        speed: progress per unit of time on given GPUs; None = always 1.
    """

    def __init__(
        self,
        clock: Clock,
        duration: Callable[[Job], int],
        costs: Costs,
        speed: Callable[[Job, Allocation], float] | None,
    ) -> None:
        self._clock = clock
        self._duration = duration
        self._speed = speed
        self._checkpoint = to_ns(costs.checkpoint_s)
        self._restore = to_ns(costs.restore_s)
        self._first_start = to_ns(costs.start_s)
        self._interval = to_ns(costs.checkpoint_interval_s)
        self._jobs: dict[str, Job] = {}
        self._processes: dict[str, _Process] = {}

    def on_submitted(self, event: Submitted) -> None:
        """The job can be started from now on."""
        self._jobs[event.job.id] = event.job

    def on_finished(self, event: Finished) -> None:
        """Nothing more comes of the job."""
        process = self._processes.pop(event.job_id, None)
        if process is not None:
            self._clock.call_off(process.ticket)

    def on_stopped(self, event: Stopped) -> None:
        """The checkpoint is written and the GPUs are given up."""
        process = self._processes[event.job_id]
        process.saved = process.done
        process.allocation = None

    def carry_out(self, now: int, actions: Sequence[Action]) -> None:
        """Announce what will come of the actions."""
        for action in actions:
            kind = type(action)
            if kind is Wake:
                self._wake(action)  # type: ignore[arg-type]
            elif kind is Start:
                self._start(now, action)  # type: ignore[arg-type]
            elif kind is Stop:
                self._stop(now, action.job_id, self._checkpoint)  # type: ignore[attr-defined]
            elif kind is Kill:
                self._stop(now, action.job_id, 0)  # type: ignore[attr-defined]

    def on_node_down(self, event: NodeDown, now: int) -> None:
        """The jobs on a failed node die; work since their last checkpoint is gone."""
        for name, process in self._processes.items():
            if process.allocation is None or event.node not in process.allocation.nodes:
                continue
            self._save(process, now)
            self._halt(process, process.saved)
            process.allocation = None
            self._clock.announce(now, Lost(name, process.saved, "node failure"))

    def expected_end(self, name: str, now: int) -> int:
        """When a job that has been started will end if it is left alone from `now` on, ns."""
        process = self._processes[name]
        return process.ends_at if process.began != NOT_RUNNING else now + process.work - process.done

    # -- saving and restoring -------------------------------------------------------------------

    def capture(self) -> dict[str, list[dict[str, Any]]]:
        """Jobs' processes, with the work that each will turn out to be, and what was announced.

        Node events are left out: whoever announced them knows them. So is when a job will finish:
        that follows from its work.
        """
        processes: list[dict[str, Any]] = [
            {"job": job.id, "work": self._duration(job)} for job in self._jobs.values()
        ]
        owners = {}
        for name, process in self._processes.items():
            owners[id(process.ticket)] = name
            entry = {name: getattr(process, name) for name in ("work", "done", "saved", "speed")}
            began = None if process.began == NOT_RUNNING else process.began
            processes.append({"job": name, **entry, "began": began})
        events: list[dict[str, Any]] = []
        for at, event, ticket in self._clock.announced():
            if isinstance(event, NodeDown | NodeDrained | NodeUp):
                continue
            when = {} if type(event) is Finished else {"at": at}
            events.append({**when, **plain_event(event), "of": owners.get(id(ticket))})
        return {"processes": processes, "events": events}

    def restore(
        self, captured: Mapping[str, list[dict[str, Any]]], jobs: Mapping[str, tuple[Job, Allocation | None]]
    ) -> None:
        """Go on where `capture` was asked.

        Args:
            captured: the processes' work may have been changed meanwhile, as long as it is more than
                they have done.
            jobs: those in the system, each with the GPUs that its process sits on.
        """
        for entry in captured["processes"]:
            job, allocation = jobs[entry["job"]]
            if "done" not in entry:
                self._jobs[job.id] = job
                continue
            process = self._processes[job.id] = _Process(job, entry["work"])
            process.done, process.saved, process.speed = entry["done"], entry["saved"], entry["speed"]
            process.began = NOT_RUNNING if entry["began"] is None else entry["began"]
            process.allocation = allocation
        for entry in captured["events"]:
            values = {name: value for name, value in entry.items() if name not in ("at", "of", "line")}
            event = build_event(values)
            owner = self._processes.get(entry["of"]) if entry["of"] is not None else None
            ticket = ALWAYS if owner is None else owner.ticket
            at = owner.ends_at if owner is not None and type(event) is Finished else entry["at"]
            self._clock.announce(at, event, ticket)

    # -- inside ---------------------------------------------------------------------------------

    def _start(self, now: int, action: Start) -> None:
        name = action.job_id
        process = self._processes.get(name)
        if process is None:
            job = self._jobs.pop(name)
            process = self._processes[name] = _Process(job, self._duration(job))
            delay = self._first_start
        else:
            delay = self._restore
        if self._speed is not None:
            process.speed = self._speed(process.job, action.allocation)
        process.allocation = action.allocation
        process.began = now + delay
        self._clock.announce(now + delay, Started(name), process.ticket)
        self._clock.announce(process.ends_at, Finished(name), process.ticket)

    def _wake(self, action: Wake) -> None:
        # What the engine wants to know of a running job is of no use once it has stopped.
        process = self._processes.get(action.job_id) if action.job_id is not None else None
        ticket = ALWAYS if process is None or process.allocation is None else process.ticket
        self._clock.announce(action.at, Timer(action.job_id, action.version), ticket)

    def _stop(self, now: int, name: str, delay: int) -> None:
        process = self._processes[name]
        self._save(process, now)
        self._halt(process, process.progress(now))
        if delay:
            self._clock.announce(now + delay, CheckpointWritten(name, process.done), process.ticket)
        self._clock.announce(now + delay, Stopped(name), process.ticket)

    def _save(self, process: _Process, now: int) -> None:
        """Bring up to date what the last periodic checkpoint holds."""
        elapsed = now - process.began
        if elapsed > 0:
            process.saved = process.progress(now - elapsed % self._interval)

    def _halt(self, process: _Process, done: int) -> None:
        """Call off what was announced for the process."""
        self._clock.call_off(process.ticket)
        process.ticket = Ticket()
        process.done = done
        process.began = NOT_RUNNING
