"""A schedule over time: how full the cluster was, who waited, which job sat where.

Everything is worked out from the ledger's holds afterwards, exactly: each figure is a
time average over its bucket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmaster.metrics.ledger import Ledger
from trainmaster.metrics.measures import Floats, seconds
from trainmaster.model.cluster import Cluster
from trainmaster.model.units import GPU, SECOND

MAX_BUCKETS = 600
"""Buckets are whole hours, as many as keep their number below this."""

CHUNK = 200_000
"""Intervals looked at together: millions at once would cost more memory than the run."""

LANE_HOURS = 24
MAX_SEGMENTS = 6_000


def time_series(ledger: Ledger) -> dict[str, Any]:
    """Time-averaged used GPUs, running and pending jobs, and GPUs asked by pending jobs."""
    submit = seconds([job.submit for job in ledger.jobs])
    size = np.array([job.request.gpus for job in ledger.jobs], dtype=np.float64) / GPU
    rows = np.asarray(ledger.hold_row, dtype=np.int64)
    asked, left = seconds(ledger.hold_asked), seconds(ledger.hold_left)
    finish = seconds(ledger.finish)
    end = max(float(left.max(initial=0.0)), float(submit.max(initial=0.0)), 1.0)
    width = 3600.0 * max(1, int(np.ceil(end / 3600.0 / MAX_BUCKETS)))
    begin = float(np.floor(submit.min(initial=end) / width) * width)
    count = int(np.ceil((end - begin) / width)) or 1
    gone = np.where(np.asarray(ledger.finish, dtype=np.int64) < 0, end, finish)
    ones = np.ones(len(submit))
    used = bucket_means(asked, left, size[rows], begin, width, count)
    running = bucket_means(asked, left, np.ones(len(rows)), begin, width, count)
    present = bucket_means(submit, gone, ones, begin, width, count)
    wanted = bucket_means(submit, gone, size, begin, width, count)
    return {
        "width_s": width,
        "start_s": begin,
        "used_gpus": rounded(used),
        "running_jobs": rounded(running),
        "pending_jobs": rounded(present - running),
        "pending_gpus": rounded(wanted - used),
    }


def bucket_means(
    start: Floats, end: Floats, weight: Floats, begin: float, width: float, count: int
) -> Floats:
    """Mean over each bucket of the summed weight of the intervals [start, end).

    >>> bucket_means(np.array([0.0]), np.array([15.0]), np.array([2.0]), 0.0, 10.0, 2)
    array([2., 1.])
    """
    # Up to instant b, an interval that began at s contributes weight x (b - s), and one that
    # ended at e takes weight x (b - e) back: sums over whole buckets are all that is needed.
    bounds = width * np.arange(1, count + 1)
    total = np.zeros(count)
    for instants, sign in ((start, 1.0), (end, -1.0)):
        weights, moments = np.zeros(count + 1), np.zeros(count + 1)
        for first in range(0, len(instants), CHUNK):
            part = slice(first, first + CHUNK)
            since = np.maximum(instants[part] - begin, 0.0)
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
    asked = np.asarray(ledger.hold_asked, dtype=np.int64)
    left = np.asarray(ledger.hold_left, dtype=np.int64)
    within = (left > begin * SECOND) & (asked < end * SECOND) & (left > asked)
    inside: NDArray[np.int64] = np.flatnonzero(within)
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
            lower, upper = max(start / SECOND, begin), min(stop / SECOND, end)
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
    width, start = float(series["width_s"]), float(series["start_s"])
    busy = np.array(series["used_gpus"]) + np.array(series["pending_gpus"])
    peak = start + width * int(np.argmax(busy))
    begin = max(start, peak - LANE_HOURS / 2 * 3600.0)
    return begin, begin + LANE_HOURS * 3600.0
