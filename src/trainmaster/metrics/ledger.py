"""The ledger: what each job waited, ran, held and lost, written down as it happens.

It listens to events and actions, never to the engine's insides. Finished jobs go into
columns, so that memory stays small; each time a job held GPUs is one *hold*:
[asked to start, progress began, progress ended, GPUs given back).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from trainmaster.model.action import Action, Start, Stop
from trainmaster.model.allocation import Allocation
from trainmaster.model.event import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Lost,
    Started,
    Stopped,
    Submitted,
)
from trainmaster.model.job import Job

NEVER = -1
"""An instant that has not come."""


class _Open:
    """A job that is still in the system."""

    __slots__ = (
        "allocation",
        "asked",
        "first_start",
        "job",
        "kept",
        "lost",
        "progress_began",
        "progress_ended",
        "row",
        "run",
    )

    def __init__(self, job: Job, row: int) -> None:
        self.job = job
        self.row = row
        self.first_start = NEVER
        self.run = self.kept = self.lost = 0
        self.allocation: Allocation | None = None
        self.asked = self.progress_began = self.progress_ended = NEVER


class Ledger:
    """Columns of jobs and of holds.

    Args:
        speed: progress per unit of time on given GPUs; None = always 1.

    Attributes:
        jobs: every job submitted, in that order; `row` below is an index into it.
        first_start, finish: ns by row; -1 = never.
        run: ns of running by row, work that was lost included.
        lost: ns of running by row whose work was lost with a node.
        preemptions: times stopped by the scheduler, by row.
        status: "finished", "failed", "cancelled" or "unfinished", by row.
        hold_row, hold_asked, hold_began, hold_ended, hold_left: the holds, in the order
            in which they ended; instants in ns (`began` = `ended` if nothing was done).
        hold_allocation: their GPUs.
        ended: number of jobs that have ended, however.
    """

    def __init__(self, speed: Callable[[Job, Allocation], float] | None = None) -> None:
        self._speed = speed
        self.jobs: list[Job] = []
        self.first_start = array("q")
        self.finish = array("q")
        self.run = array("q")
        self.lost = array("q")
        self.preemptions = array("q")
        self.status: list[str] = []
        self.hold_row = array("q")
        self.hold_asked = array("q")
        self.hold_began = array("q")
        self.hold_ended = array("q")
        self.hold_left = array("q")
        self.hold_allocation: list[Allocation] = []
        self.ended = 0
        self._open: dict[str, _Open] = {}

    def record(self, now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        """Write down one instant: the events of a batch and the actions they led to."""
        for event in events:
            write = self._OF_EVENT.get(type(event))
            if write is not None:
                write(self, event, now)
        for action in actions:
            write = self._OF_ACTION.get(type(action))
            if write is not None:
                write(self, action, now)

    def close(self, now: int) -> None:
        """No more events will come: account for the jobs still in the system."""
        for job in self._open.values():
            if job.allocation is not None:
                self._end_hold(job, now)
            self._write_totals(job)
        self._open.clear()

    # -- events ---------------------------------------------------------------------------------

    def _enter(self, event: Submitted, now: int) -> None:
        job = event.job
        self._open[job.id] = _Open(job, len(self.jobs))
        self.jobs.append(job)
        for column in (self.first_start, self.finish):
            column.append(NEVER)
        for column in (self.run, self.lost, self.preemptions):
            column.append(0)
        self.status.append("unfinished")

    def _begin_progress(self, event: Started, now: int) -> None:
        job = self._open.get(event.job_id)
        if job is not None and job.progress_ended == NEVER:
            job.progress_began = now

    def _stop(self, event: Stopped, now: int) -> None:
        job = self._open[event.job_id]
        if self.status[job.row] == "cancelled":
            self._end_job(event.job_id, now, "cancelled")
        else:
            self._end_hold(job, now)

    def _finish(self, event: Finished, now: int) -> None:
        self._end_job(event.job_id, now, "finished")

    def _fail(self, event: Failed, now: int) -> None:
        self._end_job(event.job_id, now, "failed")

    def _lose(self, event: Lost, now: int) -> None:
        job = self._open[event.job_id]
        speed = self._speed_of(job)
        self._end_hold(job, now)
        job.lost += round((job.kept - event.kept) / speed)
        job.kept = event.kept
        if self.status[job.row] == "cancelled":
            self._end_job(event.job_id, now, "cancelled")

    def _cancel(self, event: Cancelled, now: int) -> None:
        job = self._open[event.job_id]
        if job.allocation is None:
            self._end_job(event.job_id, now, "cancelled")
        else:
            if job.progress_ended == NEVER:
                job.progress_ended = now
            self.status[job.row] = "cancelled"

    # -- actions --------------------------------------------------------------------------------

    def _begin_hold(self, action: Start, now: int) -> None:
        job = self._open[action.job_id]
        if job.first_start == NEVER:
            job.first_start = self.first_start[job.row] = now
        job.asked, job.progress_began, job.progress_ended = now, NEVER, NEVER
        job.allocation = action.allocation

    def _end_progress(self, action: Stop, now: int) -> None:
        job = self._open[action.job_id]
        job.progress_ended = now
        self.preemptions[job.row] += 1

    # What is not named here says nothing about a job's time. Of the class, not the object: bound
    # methods would make a cycle that keeps the columns in memory.
    _OF_EVENT: ClassVar[dict[type[Event], Callable[[Ledger, Any, int], None]]] = {
        Submitted: _enter,
        Started: _begin_progress,
        Stopped: _stop,
        Finished: _finish,
        Failed: _fail,
        Lost: _lose,
        Cancelled: _cancel,
    }
    _OF_ACTION: ClassVar[dict[type[Action], Callable[[Ledger, Any, int], None]]] = {
        Start: _begin_hold,
        Stop: _end_progress,
    }

    # -- writing --------------------------------------------------------------------------------

    def _end_hold(self, job: _Open, now: int) -> None:
        """The job gives up its GPUs: write down for how long it had them."""
        assert job.allocation is not None
        speed = self._speed_of(job)
        ended = now if job.progress_ended == NEVER else job.progress_ended
        began = ended if job.progress_began == NEVER else job.progress_began
        self.hold_row.append(job.row)
        self.hold_asked.append(job.asked)
        self.hold_began.append(began)
        self.hold_ended.append(ended)
        self.hold_left.append(now)
        self.hold_allocation.append(job.allocation)
        job.run += ended - began
        job.kept += ended - began if speed == 1.0 else int((ended - began) * speed)
        job.allocation = None

    def _end_job(self, job_id: str, now: int, status: str) -> None:
        job = self._open.pop(job_id)
        if job.allocation is not None:
            self._end_hold(job, now)
        self.finish[job.row] = now
        self.status[job.row] = status
        self._write_totals(job)
        self.ended += 1

    def _write_totals(self, job: _Open) -> None:
        self.run[job.row] = job.run
        self.lost[job.row] = job.lost

    def _speed_of(self, job: _Open) -> float:
        """Progress per unit of time on the GPUs that it holds."""
        assert job.allocation is not None
        return 1.0 if self._speed is None else self._speed(job.job, job.allocation)
