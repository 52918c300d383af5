"""A job: what its user asked for and declared. Never what really happened.

What really happened (duration, final status) is a `trainmaster.traces.Truth`,
which only the simulator holds, so that no policy can read it by accident.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """The resources a job asks for; jobs with equal requests are interchangeable
    to placement, which is what makes decisions fast (one heap per request).

    Args:
        gpus: milli-GPUs of the whole gang (1000 = one GPU). A request below one GPU
            is a fraction of a single device.
        gpu_types: acceptable GPU types, any of them; empty = any type.
        nodes: number of nodes the user asked for; None = the placement decides.
        min_gpus: fewest milli-GPUs an elastic job can run with; None = rigid.
        max_gpus: most milli-GPUs an elastic job can use; None = rigid.
        preemptible: whether the scheduler may stop the job and resume it later.
        pods: number of equal pods that the gang consists of; a pod never spans nodes.
            None = the placement decides how to split the gang.
        labels: (key, value) pairs, sorted, that its nodes must have.
        within: level of the topology one of whose places the gang must not leave; "" = any nodes.
        near: the same, if it can be had; else any nodes.

    >>> Request(gpus=8000, pods=2).pod
    4000
    """

    gpus: int
    gpu_types: tuple[str, ...] = ()
    nodes: int | None = None
    min_gpus: int | None = None
    max_gpus: int | None = None
    preemptible: bool = True
    pods: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    within: str = ""
    near: str = ""

    @property
    def pod(self) -> int:
        """Milli-GPUs of one pod; of the whole gang where nothing is said of pods."""
        return self.gpus // self.pods if self.pods else self.gpus


@dataclass(frozen=True, slots=True)
class Workload:
    """What a job computes, as far as its user says.

    Args:
        model: name of the model (the key into a speed profile).
        batch_size: samples per iteration over the whole gang; None = unknown.
        iterations: iterations to run; None = unknown.
    """

    model: str
    batch_size: int | None = None
    iterations: float | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """Finish by `at` (absolute nanoseconds) to be worth `value`."""

    at: int
    value: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One job as submitted. Compared by identity; named by `id`.

    Args:
        id: unique name within a trace or a cluster.
        sequence: arrival order, 0, 1, 2, …; breaks every tie.
        submit: instant of submission, nanoseconds.
        request: resources asked.
        tenant: who is charged (virtual cluster, account, project); "" = one tenant.
        user: who submitted.
        priority: larger is more urgent.
        declared: the user's own estimate or limit of the run time, nanoseconds.
        workload: model, batch and iterations, when known.
        deadlines: in growing order of time, with falling values; empty = best effort.
        depends_on: ids of jobs that must finish first.
        min_run: time for which it may not be stopped after a start, ns; None = as the policy says.
        not_before: instant before which it must not start, ns.
        job_class: the source's own label ("strict", "best-effort", …).
    """

    id: str
    sequence: int
    submit: int
    request: Request
    tenant: str = ""
    user: str = ""
    priority: int = 0
    declared: int | None = None
    workload: Workload | None = None
    deadlines: tuple[Deadline, ...] = ()
    depends_on: tuple[str, ...] = ()
    job_class: str = ""
    min_run: int | None = None
    not_before: int = 0
