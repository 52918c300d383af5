"""Jobs for the tests of profiles."""

from __future__ import annotations

from trainmaster.model.job import Job, Request, Workload


def job(
    model: str | None,
    gpus: float = 1,
    batch_size: int | None = None,
    iterations: float | None = None,
    id: str = "a",
) -> Job:
    """A job that trains the model; None = it names no workload."""
    workload = None if model is None else Workload(model, batch_size, iterations)
    return Job(id, 0, 0, Request(round(gpus * 1000)), workload=workload)
