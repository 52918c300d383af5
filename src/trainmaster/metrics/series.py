"""A schedule over time: how full the cluster was, who waited, which job sat where.

Everything is worked out from the ledger's holds afterwards, exactly: each figure is a
time average over its bucket. Seconds count from the first submission, whatever the
trace's clock says then: 0, the seconds since 1970, or the start of a slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainmaster.metrics.ledger import Ledger
from trainmaster.metrics.measures import Floats, Instants, instants, seconds
from trainmaster.model.cluster import Cluster
from trainmaster.model.units import GPU, SECOND

MAX_BUCKETS = 600
"""Buckets are whole hours, as many as keep their number below this."""

CHUNK = 200_000
"""Intervals looked at together: millions at once would cost more memory than the run."""

LANE_HOURS = 24
MAX_SEGMENTS = 6_000


def since_first_submission(ledger: Ledger, column: object) -> Instants:
    """Instants of the trace's clock, ns, as ns since the first submission."""
    return instants(column) - first_submission(ledger)


def first_submission(ledger: Ledger) -> int:
    """Its instant on the trace's clock, ns; 0 without jobs."""
    return min((job.submit for job in ledger.jobs), default=0)


def time_series(ledger: Ledger) -> dict[str, Any]:
    """Time-averaged used GPUs, running and pending jobs, and GPUs asked by pending jobs."""

    def since(column: object) -> Floats:
        return seconds(since_first_submission(ledger, column))

    submit = since([job.submit for job in ledger.jobs])
    size = np.array([job.request.gpus for job in ledger.jobs], dtype=np.float64) / GPU
    rows = np.asarray(ledger.hold_row, dtype=np.int64)
    asked, left = since(ledger.hold_asked), since(ledger.hold_left)
    end = max(float(left.max(initial=0.0)), float(submit.max(initial=0.0)), 1.0)
    width = 3600.0 * max(1, int(np.ceil(end / 3600.0 / MAX_BUCKETS)))
    count = int(np.ceil(end / width))
    unfinished = np.array([status == "unfinished" for status in ledger.status], dtype=bool)
    gone = np.where(unfinished, end, since(ledger.finish))
    ones = np.ones(len(submit))
    used = bucket_means(asked, left, size[rows], width, count)
    running = bucket_means(asked, left, np.ones(len(rows)), width, count)
    present = bucket_means(submit, gone, ones, width, count)
    wanted = bucket_means(submit, gone, size, width, count)
    return {
        "first_submission_s": first_submission(ledger) / SECOND,
        "start_s": 0.0,
        "width_s": width,
        "used_gpus": rounded(used),
        "running_jobs": rounded(running),
        "pending_jobs": rounded(present - running),
        "pending_gpus": rounded(wanted - used),
    }


def bucket_means(start: Floats, end: Floats, weight: Floats, width: float, count: int) -> Floats:
    """Mean over each bucket of the summed weight of the intervals [start, end); the first begins at 0.

    >>> bucket_means(np.array([0.0]), np.array([15.0]), np.array([2.0]), 10.0, 2)
    array([2., 1.])
    """
    # Up to instant b, an interval that began at s contributes weight x (b - s), and one that
    # ended at e takes weight x (b - e) back: sums over whole buckets are all that is needed.
    bounds = width * np.arange(1, count + 1)
    total = np.zeros(count)
    for times, sign in ((start, 1.0), (end, -1.0)):
        weights, moments = np.zeros(count + 1), np.zeros(count + 1)
        for first in range(0, len(times), CHUNK):
            part = slice(first, first + CHUNK)
            since = np.maximum(times[part], 0.0)
            bucket = np.minimum((since / width).astype(np.int64), count)
            weights += np.bincount(bucket, weight[part], count + 1)
            moments += np.bincount(bucket, weight[part] * since, count + 1)
        total += sign * (bounds * np.cumsum(weights[:count]) - np.cumsum(moments[:count]))
    means: Floats = np.diff(total, prepend=0.0) / width
    return means


def rounded(values: Floats) -> list[float]:
    """Values for a file: three decimals, no minus zero."""
    return [round(float(value), 3) + 0.0 for value in np.maximum(values, 0.0)]


def lanes(ledger: Ledger, cluster: Cluster, series: dict[str, Any]) -> dict[str, Any] | None:
    """Which job sat on which device, for a day around the busiest time; None in a pool."""
    if cluster.pooled or not len(ledger.hold_row):
        return None
    begin, end = _busiest_window(series)
    first = first_submission(ledger)
    asked = since_first_submission(ledger, ledger.hold_asked)
    left = since_first_submission(ledger, ledger.hold_left)
    within = (left > begin * SECOND) & (asked < end * SECOND) & (left > asked)
    inside: Instants = np.flatnonzero(within)
    inside = inside[np.argsort(asked[inside], kind="stable")]
    segments: list[list[Any]] = []
    for hold in inside.tolist():
        job = ledger.jobs[ledger.hold_row[hold]]
        times = (
            (ledger.hold_asked[hold], ledger.hold_began[hold], "overhead"),
            (ledger.hold_began[hold], ledger.hold_ended[hold], "run"),
            (ledger.hold_ended[hold], ledger.hold_left[hold], "overhead"),
        )
        for start, stop, kind in times:
            lower, upper = max((start - first) / SECOND, begin), min((stop - first) / SECOND, end)
            if lower >= upper:
                continue
            for share in ledger.hold_allocation[hold].shares:
                name = (job.id, job.tenant, job.request.gpus / GPU, kind)
                segments.append([share.node, share.devices, lower, upper, *name])
        if len(segments) > MAX_SEGMENTS:
            end = max(segments[-1][2], begin + 3600.0)
            segments = [segment for segment in segments if segment[2] < end]
            break
    nodes = [{"name": node.name, "gpus": node.gpus} for node in cluster.nodes]
    return {"from_s": begin, "to_s": end, "nodes": nodes, "segments": segments}


def _busiest_window(series: dict[str, Any]) -> tuple[float, float]:
    """A day that ends a little after the bucket with the most GPUs used and asked."""
    busy = np.array(series["used_gpus"]) + np.array(series["pending_gpus"])
    peak = float(series["width_s"]) * int(np.argmax(busy))
    begin = max(0.0, peak - LANE_HOURS / 2 * 3600.0)
    return begin, begin + LANE_HOURS * 3600.0
