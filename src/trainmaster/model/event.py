"""What happened: the only way anything reaches the engine.

Events of one instant are applied in the order of their `rank`: completions come
before everything else, arrivals after everything that changes capacity, timers
last. Executors (the simulator, the live agents) make events; nobody else does.

>>> from trainmaster.model.event import Finished, Submitted
>>> Finished.rank < Submitted.rank
True
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.model.job import Job
from trainmaster.model.record import record


@record
class Event:
    """Base of all events."""

    rank: ClassVar[int]


@record
class Finished(Event):
    """A running job has done all its work."""

    rank: ClassVar[int] = 0
    job_id: str


@record
class Failed(Event):
    """A job ended with an error of its own; it is not restarted."""

    rank: ClassVar[int] = 1
    job_id: str
    reason: str = ""


@record
class Stopped(Event):
    """A job that was asked to stop holds no GPU any more; its work is saved."""

    rank: ClassVar[int] = 2
    job_id: str


@record
class NodeDown(Event):
    """A node is gone; the jobs on it are reported one by one as `Lost`."""

    rank: ClassVar[int] = 3
    node: int


@record
class NodeDrained(Event):
    """A node takes no new jobs; those on it run on. It is back with `NodeUp`."""

    rank: ClassVar[int] = 3
    node: int


@record
class Lost(Event):
    """A job died through no fault of its own; `kept` ns of its progress are saved."""

    rank: ClassVar[int] = 4
    job_id: str
    kept: int
    reason: str = ""


@record
class NodeUp(Event):
    """A node is back and healthy."""

    rank: ClassVar[int] = 5
    node: int


@record
class CheckpointWritten(Event):
    """A running or stopping job has saved `progress` ns of its work."""

    rank: ClassVar[int] = 6
    job_id: str
    progress: int


@record
class Started(Event):
    """A job that was asked to start makes progress from now on."""

    rank: ClassVar[int] = 7
    job_id: str


@record
class Cancelled(Event):
    """The user withdrew a job."""

    rank: ClassVar[int] = 8
    job_id: str


@record
class Submitted(Event):
    """A new job."""

    rank: ClassVar[int] = 9
    job: Job


@record
class Timer(Event):
    """An instant that the engine asked for with a `Wake` has come.

    The version makes a stale timer recognisable: it counts only if it still is the
    job's (or, without a job, the engine's) current one.
    """

    rank: ClassVar[int] = 10
    job_id: str | None
    version: int
