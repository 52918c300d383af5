"""The ledger: what each job waited, ran, held and lost, written down as it happens.

It listens to events and actions, never to the engine's insides. Finished jobs go into
columns, so that memory stays small; each time a job held GPUs is one *hold*:
[asked to start, progress began, progress ended, GPUs given back).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from trainmaster.model.action import Action, Start, Stop
from trainmaster.model.allocation import Allocation
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Lost,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job

NEVER = -1
"""An instant that has not come."""


class _Open:
    """A job that is still in the system."""

    __slots__ = (
        "allocation",
        "asked",
        "began",
        "ended",
        "first_start",
        "job",
        "kept",
        "lost",
        "preemptions",
        "row",
        "run",
    )

    def __init__(self, job: Job, row: int) -> None:
        self.job = job
        self.row = row
        self.first_start = NEVER
        self.run = self.kept = self.lost = 0
        self.preemptions = 0
        self.allocation: Allocation | None = None
        self.asked = self.began = self.ended = NEVER


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
        jobs = self._open
        for event in events:
            kind = type(event)
            if kind is Timer or kind is CheckpointWritten:
                continue
            if kind is Submitted:
                self._submitted(event.job)  # type: ignore[attr-defined]
            elif kind is Started:
                job = jobs.get(event.job_id)  # type: ignore[attr-defined]
                if job is not None and job.ended == NEVER:
                    job.began = now
            elif kind is Finished:
                self._closed(jobs.pop(event.job_id), now, "finished")  # type: ignore[attr-defined]
            elif kind is Stopped:
                self._stopped(event.job_id, now)  # type: ignore[attr-defined]
            elif isinstance(event, Failed):
                self._closed(jobs.pop(event.job_id), now, "failed")
            elif isinstance(event, Lost):
                job = jobs[event.job_id]
                speed = self._left(job, now)
                job.lost += round((job.kept - event.kept) / speed)
                job.kept = event.kept
                if self.status[job.row] == "cancelled":
                    self._closed(jobs.pop(event.job_id), now, "cancelled")
            elif isinstance(event, Cancelled):
                job = jobs[event.job_id]
                if job.allocation is None:
                    self._closed(jobs.pop(event.job_id), now, "cancelled")
                else:
                    job.ended = now if job.ended == NEVER else job.ended
                    self.status[job.row] = "cancelled"
        for action in actions:
            if type(action) is Start:
                job = jobs[action.job_id]
                if job.first_start == NEVER:
                    job.first_start = self.first_start[job.row] = now
                job.asked, job.began, job.ended = now, NEVER, NEVER
                job.allocation = action.allocation
            elif type(action) is Stop:
                job = jobs[action.job_id]
                job.ended = now
                job.preemptions += 1
                self.preemptions[job.row] += 1

    def close(self, now: int) -> None:
        """No more events will come: account for the jobs still in the system."""
        for job in self._open.values():
            if job.allocation is not None:
                self._left(job, now)
            self._total(job)
        self._open.clear()

    def _submitted(self, job: Job) -> None:
        self._open[job.id] = _Open(job, len(self.jobs))
        self.jobs.append(job)
        for column in (self.first_start, self.finish):
            column.append(NEVER)
        for column in (self.run, self.lost, self.preemptions):
            column.append(0)
        self.status.append("unfinished")

    def _stopped(self, job_id: str, now: int) -> None:
        job = self._open[job_id]
        if self.status[job.row] == "cancelled":
            self._closed(self._open.pop(job_id), now, "cancelled")
        else:
            self._left(job, now)

    def _left(self, job: _Open, now: int) -> float:
        """The job holds no GPUs any more; returns how fast it was on them."""
        assert job.allocation is not None
        speed = 1.0 if self._speed is None else self._speed(job.job, job.allocation)
        ended = now if job.ended == NEVER else job.ended
        began = ended if job.began == NEVER else job.began
        self.hold_row.append(job.row)
        self.hold_asked.append(job.asked)
        self.hold_began.append(began)
        self.hold_ended.append(ended)
        self.hold_left.append(now)
        self.hold_allocation.append(job.allocation)
        job.run += ended - began
        job.kept += ended - began if speed == 1.0 else int((ended - began) * speed)
        job.allocation = None
        return speed

    def _closed(self, job: _Open, now: int, status: str) -> None:
        if job.allocation is not None:
            self._left(job, now)
        self.finish[job.row] = now
        self.status[job.row] = status
        self._total(job)
        self.ended += 1

    def _total(self, job: _Open) -> None:
        self.run[job.row] = job.run
        self.lost[job.row] = job.lost
