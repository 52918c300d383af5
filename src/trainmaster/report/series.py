"""series.json: how each run went over time, and who sat where.

The file::

    {"schema": 1,
     "runs": [{"policy": str, "nodes": int, "seed": int,   # names one run of summary.json
       "buckets": {"first_submission_s": float,          # on the trace's clock
                   "start_s": float, "width_s": float,   # bucket i starts at start_s + i*width_s
                   "used_gpus": [float], "running_jobs": [float],
                   "pending_jobs": [float], "pending_gpus": [float]},       # averages over each bucket
       "lanes": null | {"from_s": float, "to_s": float,       # up to 24 hours around the busiest one
                        "nodes": [{"name": str, "gpus": int}],
                        "segments": [[node_index, devices, start_s, end_s,
                                      job_id, tenant, num_gpus, kind]]}}]}

`devices` is a bit mask of the node's GPUs (bit 0 = the first). `kind` is "run", or
"overhead" while the job starts, writes a checkpoint or stops. `lanes` is null where
jobs are not placed on nodes (`--placement pool`). Seconds count from the first submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .document import Node


class RunKey(NamedTuple):
    """What tells the runs of one comparison apart."""

    policy: str
    nodes: int | None
    seed: int | None


@dataclass(frozen=True)
class Buckets:
    """Averages over consecutive buckets of `width_s` seconds from `start_s` after the first submission."""

    start_s: float
    width_s: float
    used_gpus: tuple[float, ...]
    running_jobs: tuple[float, ...]
    pending_jobs: tuple[float, ...]
    pending_gpus: tuple[float, ...]


class LaneNode(NamedTuple):
    name: str
    gpus: int


class Segment(NamedTuple):
    """A job on some devices of one node during [start_s, end_s)."""

    node: int
    devices: int
    start_s: float
    end_s: float
    job_id: str
    tenant: str
    num_gpus: float
    kind: str


@dataclass(frozen=True)
class Lanes:
    """Who held which devices between `from_s` and `to_s`, seconds after the first submission."""

    from_s: float
    to_s: float
    nodes: tuple[LaneNode, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Series:
    """How one run went over time; `first_submission_s` is on the trace's clock."""

    key: RunKey
    buckets: Buckets
    lanes: Lanes | None
    first_submission_s: float | None = None


def series_of(node: Node) -> Series:
    buckets = node["buckets"]
    columns = {
        name: tuple(item.number() for item in buckets[name].items())
        for name in ("used_gpus", "running_jobs", "pending_jobs", "pending_gpus")
    }
    if len({len(values) for values in columns.values()}) != 1:
        raise buckets.error("has lists of different lengths")
    width_s = buckets["width_s"].number()
    if width_s <= 0:
        raise buckets["width_s"].error("must be more than 0")
    return Series(
        key=RunKey(node["policy"].text(), node["nodes"].optional_whole(), node["seed"].optional_whole()),
        buckets=Buckets(buckets["start_s"].number(), width_s, **columns),
        lanes=None if node["lanes"].value is None else _lanes(node["lanes"]),
        first_submission_s=buckets["first_submission_s"].optional_number(),
    )


def _lanes(node: Node) -> Lanes:
    nodes = tuple(LaneNode(item["name"].text(), item["gpus"].whole()) for item in node["nodes"].items())
    from_s, to_s = node["from_s"].number(), node["to_s"].number()
    if to_s <= from_s:
        raise node["to_s"].error("must be after from_s")
    segments = node["segments"]
    return Lanes(from_s, to_s, nodes, tuple(_segment(item, nodes) for item in segments.items()))


def _segment(node: Node, nodes: Sequence[LaneNode]) -> Segment:
    match node.value:
        case [
            int(place),
            int(devices),
            int() | float() as start_s,
            int() | float() as end_s,
            str(job_id),
            str(tenant),
            int() | float() as num_gpus,
            "run" | "overhead" as kind,
        ] if 0 <= place < len(nodes) and 0 < devices < 1 << nodes[place].gpus and start_s <= end_s:
            return Segment(place, devices, start_s, end_s, job_id, tenant, num_gpus, kind)
    raise node.error(
        "must be [node_index, devices, start_s, end_s, job_id, tenant, num_gpus, kind] with devices that the "
        'node has, start_s <= end_s, and kind "run" or "overhead"'
    )
