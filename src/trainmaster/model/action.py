"""What the engine asks of an executor. Requests: what became of them returns as events."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.model.allocation import Allocation


@dataclass(frozen=True, slots=True)
class Action:
    """Base of all actions."""


@dataclass(frozen=True, slots=True)
class Start(Action):
    """Start (or resume) a job on these GPUs; answered by `Started`, `Failed` or `Lost`."""

    job_id: str
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Stop(Action):
    """Let a job write a checkpoint and give up its GPUs; answered by `Stopped`,
    `Finished` (it was quicker), `Failed` or `Lost`."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Kill(Action):
    """End a cancelled job at once, saving nothing; answered by `Stopped`."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Wake(Action):
    """Send a `Timer` with the same job and version at instant `at` (nanoseconds)."""

    at: int
    job_id: str | None
    version: int
