"""What the engine asks of an executor. Requests: what became of them returns as events."""

from __future__ import annotations

from trainmaster.model.allocation import Allocation
from trainmaster.model.record import record


@record
class Action:
    """Base of all actions."""


@record
class Start(Action):
    """Start (or resume) a job on these GPUs; answered by `Started`, `Failed` or `Lost`."""

    job_id: str
    allocation: Allocation


@record
class Stop(Action):
    """Let a job write a checkpoint and give up its GPUs; answered by `Stopped`,
    `Finished` (it was quicker), `Failed` or `Lost`."""

    job_id: str


@record
class Kill(Action):
    """End a cancelled job at once, saving nothing; answered by `Stopped`."""

    job_id: str


@record
class Wake(Action):
    """Send a `Timer` with the same job and version at instant `at` (nanoseconds)."""

    at: int
    job_id: str | None
    version: int
