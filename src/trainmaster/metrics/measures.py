"""Figures of a schedule: means, quantiles, utilization. Seconds, as floats, from here on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmaster.metrics.ledger import Ledger
from trainmaster.model.units import GPU, SECOND

Floats = NDArray[np.float64]
Instants = NDArray[np.int64]


def rank_value(ordered: Floats, share: float) -> float | None:
    """The element at position int(share x n) of sorted values; None without any.

    >>> rank_value(np.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    3.0
    """
    return float(ordered[int(share * len(ordered))]) if len(ordered) else None


def instants(column: object) -> Instants:
    """A column of nanoseconds as an array."""
    return np.asarray(column, dtype=np.int64)


def seconds(column: object) -> Floats:
    """A column of nanoseconds as float seconds."""
    return instants(column).astype(np.float64) / SECOND


def mean(values: Floats) -> float | None:
    """The mean, None without values."""
    return float(np.mean(values)) if len(values) else None


def job_measures(
    ledger: Ledger, gpus: int, *, warmup_s: float = 0.0, cooldown_s: float = 0.0
) -> dict[str, Any]:
    """The figures of one run that concern jobs and GPUs.

    Args:
        ledger: closed.
        gpus: whole GPUs of the cluster.
        warmup_s, cooldown_s: jobs submitted within so many seconds of the first or the
            last submission are simulated but not counted in the figures about jobs.

    Keys as in summary.json; a figure that does not apply is None.
    """
    submit = instants([job.submit for job in ledger.jobs])
    size = np.array([job.request.gpus for job in ledger.jobs], dtype=np.float64) / GPU
    finish, first = instants(ledger.finish), instants(ledger.first_start)
    run, lost = seconds(ledger.run), seconds(ledger.lost)
    finished = np.array([status == "finished" for status in ledger.status], dtype=bool)
    counted = counted_jobs(seconds(submit), warmup_s, cooldown_s)
    done = finished & counted
    # Instants are subtracted before they become floats, which since 1970 hold no nanoseconds.
    completion = seconds(finish - submit)
    jct = np.sort(completion[done])
    started = counted & (first >= 0)
    makespan = float(finish[finished].max() - submit.min()) / SECOND if finished.any() else None
    useful = float(np.sum((run - lost) * size))
    overhead = seconds(instants(ledger.hold_left) - instants(ledger.hold_asked))
    overhead -= seconds(instants(ledger.hold_ended) - instants(ledger.hold_began))
    held = size[np.asarray(ledger.hold_row, dtype=np.int64)]
    return {
        "jobs": int(counted.sum()),
        "finished": int(done.sum()),
        "mean_jct_s": mean(completion[done]),
        "median_jct_s": float(np.median(jct)) if len(jct) else None,
        "p90_jct_s": rank_value(jct, 0.9),
        "p99_jct_s": rank_value(jct, 0.99),
        "mean_wait_s": mean((completion - run)[done]),
        "mean_first_wait_s": mean(seconds(first - submit)[started]),
        "makespan_s": makespan,
        "utilization": useful / (gpus * makespan) if makespan else None,
        "utilization_in_span": _utilization_in_span(ledger, size, gpus),
        "preemptions": int(sum(ledger.preemptions)),
        "overhead_gpu_s": float(np.sum(overhead * held)),
        "lost_gpu_s": float(np.sum(lost * size)),
        "mean_run_s": mean(run[done]),
    }


def _utilization_in_span(ledger: Ledger, size: Floats, gpus: int) -> float | None:
    """Share of the GPUs that made progress between the first and the last submission."""
    if not ledger.jobs:
        return None
    first, last = ledger.jobs[0].submit, ledger.jobs[-1].submit
    began, ended = (
        np.clip(instants(column), first, last) for column in (ledger.hold_began, ledger.hold_ended)
    )
    used = float(np.sum((ended - began) / SECOND * size[np.asarray(ledger.hold_row, dtype=np.int64)]))
    span = (last - first) / SECOND
    return used / (gpus * span) if span else None


def counted_jobs(submit: Floats, warmup_s: float, cooldown_s: float) -> NDArray[np.bool_]:
    """Which jobs the figures count, by their time of submission."""
    if not len(submit):
        return np.zeros(0, dtype=bool)
    inside: NDArray[np.bool_] = (submit >= submit[0] + warmup_s) & (submit <= submit[-1] - cooldown_s)
    return inside


def deadline_measures(ledger: Ledger, counted: NDArray[np.bool_]) -> dict[str, Any]:
    """Figures about deadlines, None without any job that has one."""
    with_deadline = [row for row, job in enumerate(ledger.jobs) if job.deadlines and counted[row]]
    best_effort = [row for row, job in enumerate(ledger.jobs) if not job.deadlines and counted[row]]
    if not with_deadline:
        none = dict.fromkeys(("slo_missed", "miss_rate", "weighted_miss_rate", "best_effort_mean_jct_s"))
        return {"slo_jobs": None, **none}
    missed, value_lost = 0, 0.0
    for row in with_deadline:
        deadlines = ledger.jobs[row].deadlines
        finish = ledger.finish[row] if ledger.status[row] == "finished" else None
        missed += finish is None or finish > deadlines[0].at
        reached = next((d.value for d in deadlines if finish is not None and finish <= d.at), 0.0)
        value_lost += 1 - reached / deadlines[0].value if deadlines[0].value else 0.0
    jct = [
        (ledger.finish[row] - ledger.jobs[row].submit) / SECOND
        for row in best_effort
        if ledger.status[row] == "finished"
    ]
    return {
        "slo_jobs": len(with_deadline),
        "slo_missed": missed,
        "miss_rate": missed / len(with_deadline),
        "weighted_miss_rate": value_lost / len(with_deadline),
        "best_effort_mean_jct_s": mean(np.array(jct)),
    }


def tenant_measures(ledger: Ledger, counted: NDArray[np.bool_]) -> dict[str, dict[str, Any]]:
    """Jobs, mean JCT and GPU-seconds by tenant, in order of name."""
    gpu_s: dict[str, float] = {}
    jct: dict[str, list[float]] = {}
    jobs: dict[str, int] = {}
    for row, job in enumerate(ledger.jobs):
        if not counted[row]:
            continue
        tenant = job.tenant
        jobs[tenant] = jobs.get(tenant, 0) + 1
        gpu_s[tenant] = gpu_s.get(tenant, 0.0) + ledger.run[row] / SECOND * job.request.gpus / GPU
        if ledger.status[row] == "finished":
            jct.setdefault(tenant, []).append((ledger.finish[row] - job.submit) / SECOND)
    return {
        tenant: {
            "jobs": jobs[tenant],
            "mean_jct_s": mean(np.array(jct.get(tenant, []))),
            "gpu_s": gpu_s[tenant],
            "ltgf": None,
        }
        for tenant in sorted(jobs)
    }
