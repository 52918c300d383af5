"""Small traces under one policy, and what became of each job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import trainmaster as tm
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, to_ns
from trainmaster.sim.options import Costs
from trainmaster.traces import Truth

FREE = Costs(checkpoint_s=0, restore_s=0)


class Fate(NamedTuple):
    """What became of a job: seconds, and how often it was stopped."""

    start: float
    finish: float
    stops: int = 0


@dataclass
class Ask:
    """A job: seconds and GPUs; `more` are fields of `Job` and `Request`."""

    submit: float
    duration: float
    gpus: float
    more: dict[str, Any]


def ask(submit: float, duration: float, gpus: float = 1, **more: Any) -> Ask:
    """A job for `fates`."""
    return Ask(submit, duration, gpus, more)


def fates(
    policy: str, jobs: dict[str, Ask], *, nodes: int = 1, gpus: int = 1, **settings: Any
) -> dict[str, Fate]:
    """Simulate; jobs at their nominal times, everything free of cost unless said."""
    listed, truths = [], []
    in_order = sorted(jobs.items(), key=lambda item: item[1].submit)
    for row, (name, job) in enumerate(in_order):
        asked = {key: job.more.pop(key) for key in ("preemptible", "gpu_types", "pods") if key in job.more}
        request = Request(round(job.gpus * GPU), **asked)
        listed.append(Job(name, row, to_ns(job.submit), request, **job.more))
        truths.append(Truth(to_ns(job.duration)))
    settings = {"costs": FREE, "predictor": "oracle", "validate": True, **settings}
    cluster = settings.pop("cluster", None) or tm.Cluster.homogeneous(nodes, gpus)
    table = tm.simulate(tm.Trace(listed, truths), cluster, [policy], **settings).jobs
    found = {
        str(row["job_id"]): Fate(float(row["first_start_s"]), float(row["finish_s"]), int(row["preemptions"]))
        for row in table
    }
    return {name: found[name] for name in jobs}


def stopped(found: dict[str, Fate]) -> list[str]:
    """Names of the jobs that were stopped, each once."""
    assert all(fate.stops <= 1 for fate in found.values())
    return [name for name, fate in found.items() if fate.stops]
