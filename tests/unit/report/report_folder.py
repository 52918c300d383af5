"""A result folder made by a tiny list scheduler, so that report tests need no simulator.

The numbers are plausible (bursty arrivals, heavy-tailed durations, fifo worse than srtf)
and depend on the arguments alone.
"""

from __future__ import annotations

import csv
import heapq
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GPUS_PER_NODE = 8
START_COST_S = 24.0
COLUMNS = [
    "policy",
    "job_id",
    "tenant",
    "num_gpus",
    "submit_s",
    "first_start_s",
    "finish_s",
    "jct_s",
    "wait_s",
    "run_s",
    "preemptions",
    "status",
    "deadline_s",
    "deadline_met",
    "mode",
    "group_id",
    "samples",
    "metric_loss",
    "tolerance",
]


@dataclass(eq=False)
class FakeJob:
    id: str
    tenant: str
    gpus: int
    submit: float
    duration: float
    left: float = 0.0
    started: float = 0.0
    first_start: float | None = None
    finish: float | None = None
    stops: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)

    def served(self, now: float) -> float:
        gone = now - self.started if self.places else 0.0
        return (self.duration - self.left + gone) * self.gpus

    def remaining(self, now: float) -> float:
        return self.left - (now - self.started if self.places else 0.0)


Key = Callable[[FakeJob, float], Any]
POLICIES: dict[str, tuple[Key, bool, bool]] = {  # key, preemptive, head of the queue blocks
    "fifo": (lambda job, now: job.submit, False, True),
    "fifo(backfill=greedy)": (lambda job, now: job.submit, False, False),
    "sjf": (lambda job, now: job.duration, False, False),
    "srtf": (lambda job, now: job.remaining(now), True, False),
    "srsf": (lambda job, now: job.remaining(now) * job.gpus, True, False),
    "las": (lambda job, now: (job.served(now) > 28_800, job.submit), True, False),
    "ljf": (lambda job, now: -job.duration, False, False),
    "smallest": (lambda job, now: (job.gpus, job.submit), False, False),
    "timeslice": (lambda job, now: (job.served(now) // 14_400, job.submit), True, False),
}


def make_jobs(count: int, seed: int, days: float, mean_demand: float) -> list[FakeJob]:
    """`count` jobs over `days` whose GPU-seconds fill `mean_demand` GPUs on average."""
    rng = np.random.default_rng(seed)
    span = days * 86_400
    hours = np.arange(int(days * 24))
    weight = 1.2 + np.sin((hours % 24 - 9) / 24 * 2 * np.pi) + 2.5 * (rng.random(hours.size) < 0.06)
    hour = rng.choice(hours, size=count, p=weight / weight.sum())
    submit = np.sort(np.minimum(hour * 3600 + rng.random(count) * 3600, span))
    submit -= submit[0]
    gpus = rng.choice([1, 2, 4, 8, 16], size=count, p=[0.80, 0.07, 0.06, 0.06, 0.01])
    duration = np.clip(np.exp(rng.normal(7.2, 2.0, count)), 20, 86_400)
    duration = np.maximum(20, duration * mean_demand * span / (duration * gpus).sum())
    tenant = rng.choice(8, size=count, p=[0.42, 0.2, 0.12, 0.1, 0.06, 0.05, 0.03, 0.02])
    return [
        FakeJob(f"job-{i:05d}", f"vc{who}", int(size), round(float(at), 1), round(float(length), 1))
        for i, (who, size, at, length) in enumerate(zip(tenant, gpus, submit, duration, strict=True))
    ]


class Cluster:
    def __init__(self, nodes: int) -> None:
        self.free = [(1 << GPUS_PER_NODE) - 1] * nodes

    def idle(self) -> int:
        return sum(mask.bit_count() for mask in self.free)

    def place(self, gpus: int) -> list[tuple[int, int]] | None:
        """Whole free nodes for a large gang, the fullest fitting node for the rest."""
        whole, rest = divmod(gpus, GPUS_PER_NODE)
        empty = [n for n, mask in enumerate(self.free) if mask.bit_count() == GPUS_PER_NODE]
        if len(empty) < whole:
            return None
        wanted = [(n, GPUS_PER_NODE) for n in empty[:whole]]
        if rest:
            fits = [
                (mask.bit_count(), n)
                for n, mask in enumerate(self.free)
                if mask.bit_count() >= rest and n not in empty[:whole]
            ]
            if not fits:
                return None
            wanted.append((min(fits)[1], rest))
        return [(n, self._take(n, count)) for n, count in wanted]

    def _take(self, node: int, count: int) -> int:
        taken = 0
        for _ in range(count):
            lowest = self.free[node] & -self.free[node]
            taken |= lowest
            self.free[node] ^= lowest
        return taken

    def release(self, places: Sequence[tuple[int, int]]) -> None:
        for node, mask in places:
            self.free[node] |= mask


@dataclass
class Replay:
    jobs: list[FakeJob]
    segments: list[list[Any]]
    changes: list[tuple[float, int, int, int, int]]


def replay(jobs: list[FakeJob], nodes: int, policy: str) -> Replay:
    key, preemptive, blocking = POLICIES[policy]
    cluster, pending, running = Cluster(nodes), [], []
    segments: list[list[Any]] = []
    changes: list[tuple[float, int, int, int, int]] = []
    events = [(job.submit, i) for i, job in enumerate(jobs)]
    heapq.heapify(events)
    for job in jobs:
        job.left = job.duration

    def halt(job: FakeJob, now: float) -> None:
        begin = job.started - START_COST_S
        for node, mask in job.places:
            if now > begin:
                segments.append(
                    [node, mask, begin, min(now, job.started), job.id, job.tenant, job.gpus, "overhead"]
                )
            if now > job.started:
                segments.append([node, mask, job.started, now, job.id, job.tenant, job.gpus, "run"])
        job.left -= max(0.0, now - job.started)
        cluster.release(job.places)
        job.places = []
        running.remove(job)

    while events:
        now = events[0][0]
        while events and events[0][0] <= now:
            _, i = heapq.heappop(events)
            if i >= 0:
                pending.append(jobs[i])
        for job in [job for job in running if job.started + job.left <= now + 1e-6]:
            halt(job, now)
            job.finish = now
        order = sorted(pending + running if preemptive else pending, key=lambda job: (key(job, now), job.id))
        room = len(cluster.free) * GPUS_PER_NODE if preemptive else cluster.idle()
        chosen = []
        for job in order:
            if job.gpus <= room:
                chosen.append(job)
                room -= job.gpus
            elif blocking:
                break
            if not room:
                break
        if preemptive:
            keep = {id(job) for job in chosen}
            for job in [job for job in running if id(job) not in keep and now - job.started > 60]:
                halt(job, now)
                job.stops += 1
                pending.append(job)
        for job in chosen:
            if job.places or job.finish is not None:
                continue
            places = cluster.place(job.gpus)
            if places is None:
                if blocking:
                    break
                continue
            job.places = places
            job.started = now + START_COST_S
            job.first_start = now if job.first_start is None else job.first_start
            pending.remove(job)
            running.append(job)
            heapq.heappush(events, (job.started + job.left, -1))
        used = sum(job.gpus for job in running)
        changes.append((now, used, len(running), len(pending), sum(job.gpus for job in pending)))
    return Replay(jobs, segments, changes)


def buckets(changes: list[tuple[float, int, int, int, int]], width: float) -> dict[str, Any]:
    """Time averages of the step functions in buckets of `width` seconds."""
    steps = np.array(changes, dtype=float)
    end = steps[-1, 0]
    edges = np.arange(0, np.ceil(end / width) + 1) * width
    document: dict[str, Any] = {"width_s": width, "start_s": 0.0}
    for column, name in enumerate(["used_gpus", "running_jobs", "pending_jobs", "pending_gpus"], start=1):
        area = np.concatenate([[0.0], np.cumsum(np.diff(steps[:, 0]) * steps[:-1, column])])
        document[name] = [round(float(x), 3) for x in np.diff(np.interp(edges, steps[:, 0], area)) / width]
    return document


def lanes(result: Replay, nodes: int, hours: int) -> dict[str, Any]:
    """The hours around the one with the most segments."""
    starts = np.array([segment[2] for segment in result.segments])
    busiest = int(np.bincount((starts // 3600).astype(int).clip(0)).argmax())
    begin = max(0, busiest - hours // 2) * 3600.0
    end = begin + hours * 3600.0
    inside = [
        [s[0], s[1], round(max(begin, s[2]), 3), round(min(end, s[3]), 3), *s[4:]]
        for s in result.segments
        if s[3] > begin and s[2] < end
    ]
    names = [{"name": f"node{n:03d}", "gpus": GPUS_PER_NODE} for n in range(nodes)]
    return {
        "from_s": begin,
        "to_s": end,
        "nodes": names,
        "segments": sorted(inside, key=lambda s: (s[2], s[0], s[1])),
    }


def rows_of(policy: str, jobs: list[FakeJob]) -> list[dict[str, Any]]:
    rows = []
    for job in jobs:
        assert job.finish is not None
        jct = job.finish - job.submit
        rows.append(
            {
                "policy": policy,
                "job_id": job.id,
                "tenant": job.tenant,
                "num_gpus": job.gpus,
                "submit_s": job.submit,
                "first_start_s": round(job.first_start or 0.0, 3),
                "finish_s": round(job.finish, 3),
                "jct_s": round(jct, 3),
                "wait_s": round(max(0.0, jct - job.duration), 3),
                "run_s": job.duration,
                "preemptions": job.stops,
                "status": "finished",
            }
        )
    return rows


def summary_of(policy: str, nodes: int, seed: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    jct = np.sort([row["jct_s"] for row in rows])
    makespan = max(row["finish_s"] for row in rows)
    useful = sum(row["run_s"] * row["num_gpus"] for row in rows)
    tenants = {}
    for tenant in sorted({row["tenant"] for row in rows}):
        own = [row for row in rows if row["tenant"] == tenant]
        tenants[tenant] = {
            "jobs": len(own),
            "mean_jct_s": float(np.mean([row["jct_s"] for row in own])),
            "gpu_s": float(sum(row["run_s"] * row["num_gpus"] for row in own)),
            "ltgf": None,
        }
    stops = sum(row["preemptions"] for row in rows)
    gpus = nodes * GPUS_PER_NODE
    return {
        "policy": policy,
        "knobs": {},
        "cluster": {"gpus": gpus, "nodes": nodes},
        "seed": seed,
        "predictor": "oracle",
        "placement": "pack",
        "jobs": len(rows),
        "finished": len(rows),
        "mean_jct_s": float(jct.mean()),
        "median_jct_s": float(np.median(jct)),
        "p90_jct_s": float(jct[int(0.9 * jct.size)]),
        "p99_jct_s": float(jct[int(0.99 * jct.size)]),
        "mean_wait_s": float(np.mean([row["wait_s"] for row in rows])),
        "mean_first_wait_s": float(np.mean([row["first_start_s"] - row["submit_s"] for row in rows])),
        "makespan_s": makespan,
        "utilization": useful / (gpus * makespan),
        "preemptions": stops,
        "overhead_gpu_s": 30.0 * stops,
        "lost_gpu_s": 0.0,
        "mean_run_s": float(np.mean([row["run_s"] for row in rows])),
        **dict.fromkeys(
            [
                "slo_jobs",
                "slo_missed",
                "miss_rate",
                "weighted_miss_rate",
                "best_effort_mean_jct_s",
                "fairness_loss",
            ]
        ),
        "tenants": tenants,
        "decisions": 2 * len(rows),
        "decision_ms_mean": 0.05,
        "decision_ms_p99": 0.31,
        "events": 4 * len(rows),
        "cpu_s": 0.4,
        "wall_s": 0.5,
        "peak_rss_mib": 90.0,
    }


def write_folder(
    folder: Path,
    *,
    policies: Sequence[str] = ("fifo", "fifo(backfill=greedy)", "srtf", "las"),
    nodes: Sequence[int] = (4,),
    seeds: Sequence[int] = (0,),
    count: int = 300,
    days: float = 3.0,
    load: float = 0.95,
    lane_hours: int = 12,
    placement: str = "pack",
    dropped: dict[str, int] | None = None,
) -> Path:
    """Replay a generated trace under every policy, capacity and seed; write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, rows, series = [], [], []
    demand = load * nodes[0] * GPUS_PER_NODE
    for size in nodes:
        for seed in seeds:
            for policy in policies:
                result = replay(make_jobs(count, seed, days, demand), size, policy)
                own = rows_of(policy, result.jobs)
                rows += own
                runs.append(summary_of(policy, size, seed, own) | {"placement": placement})
                series.append(
                    {
                        "policy": policy,
                        "nodes": size,
                        "seed": seed,
                        "buckets": buckets(result.changes, 3600.0),
                        "lanes": None if placement == "pool" else lanes(result, size, lane_hours),
                    }
                )
    jobs = make_jobs(count, seeds[0], days, demand)
    summary = {
        "schema": 1,
        "trainmaster": "0.1.0",
        "trace": {
            "path": "out/philly-like-synthetic-week.csv.gz",
            "jobs": count,
            "dropped": {"zero GPUs": 7, "duration <= 0": 2} if dropped is None else dropped,
            "span_s": jobs[-1].submit,
            "gpu_hours": sum(job.duration * job.gpus for job in jobs) / 3600,
        },
        "cluster": {"gpus": nodes[0] * GPUS_PER_NODE, "nodes": nodes[0]},
        "seed": seeds[0],
        "runs": runs,
    }
    write_json(folder / "summary.json", summary)
    write_json(folder / "series.json", {"schema": 1, "runs": series})
    write_rows(folder / "jobs.csv", rows)
    return folder


def write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Load, let `change` alter the document in place, store."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    write_json(path, document)


def edit_rows(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    change(rows)
    write_rows(path, rows)
