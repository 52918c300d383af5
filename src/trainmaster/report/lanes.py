"""Which job held which GPUs of which node: the rectangles of the picture, hour by hour.

The page shows one hour of one policy, drawn by `lane_drawing`; the script redraws it for
another hour, policy, page of nodes or colouring from the data of `lane_data`.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .dates import Calendar
from .series import Lanes, Segment
from .text import duration, gpus, percent, plural

HOUR_S = 3600.0
MOST_BARS = 40_000
"""Bars embedded in the page over all policies; where there are more, hours, then nodes are left out."""
NODES_PER_PAGE = 32
TENANT_COLOURS = 7
"""Tenants with a colour of their own; the others share one."""


class Bar(NamedTuple):
    """A job on neighbouring GPUs of one node; `first` and `span` count in GPUs and may be fractions."""

    node: int
    first: float
    span: float
    start_s: float
    end_s: float
    segment: Segment


@dataclass(frozen=True)
class Picture:
    """The hours of one policy that the page holds."""

    policy: str
    lanes: Lanes
    bars: list[Bar]


def bars_of(lanes: Lanes) -> list[Bar]:
    """The segments as rectangles: one for each run of neighbouring devices.

    Jobs that share a GPU (a fraction each) are put side by side within it.
    """
    whole = [bar for segment in lanes.segments if segment.num_gpus >= 1 for bar in _runs(segment)]
    shared: dict[tuple[int, int], list[Segment]] = defaultdict(list)
    for segment in lanes.segments:
        if segment.num_gpus < 1:
            shared[segment.node, segment.devices.bit_length() - 1].append(segment)
    parts = [
        bar for (_, device), segments in sorted(shared.items()) for bar in _side_by_side(device, segments)
    ]
    return sorted([*whole, *parts], key=lambda bar: (bar.start_s, bar.node, bar.first))


def _runs(segment: Segment) -> Iterator[Bar]:
    mask, first = segment.devices, 0
    while mask:
        skip = (mask & -mask).bit_length() - 1
        mask >>= skip
        first += skip
        span = (~mask & (mask + 1)).bit_length() - 1
        yield Bar(segment.node, first, span, segment.start_s, segment.end_s, segment)
        mask >>= span
        first += span


def _side_by_side(device: int, segments: Sequence[Segment]) -> Iterator[Bar]:
    """First fit of the fractions into the device's height."""
    held: list[tuple[float, float, float]] = []
    for segment in sorted(segments, key=lambda item: (item.start_s, item.job_id)):
        held = sorted(item for item in held if item[2] > segment.start_s)
        low = 0.0
        for start, end, _ in held:
            if start - low >= segment.num_gpus - 1e-9:
                break
            low = max(low, end)
        low = min(low, 1 - segment.num_gpus)
        held.append((low, low + segment.num_gpus, segment.end_s))
        yield Bar(
            segment.node,
            round(device + low, 3),
            round(segment.num_gpus, 3),
            segment.start_s,
            segment.end_s,
            segment,
        )


def pictures(lanes_by_policy: Mapping[str, Lanes]) -> list[Picture]:
    """The hours to embed: all, or where the page would grow too large those around the busiest one."""
    most = MOST_BARS // max(1, len(lanes_by_policy))
    return [Picture(policy, *_trim(lanes, bars_of(lanes), most)) for policy, lanes in lanes_by_policy.items()]


def _trim(lanes: Lanes, bars: list[Bar], most: int) -> tuple[Lanes, list[Bar]]:
    if len(bars) <= most:
        return lanes, bars
    busiest = busiest_hour(lanes, bars)
    first = last = busiest
    hours = hours_of(lanes)

    def inside(first: int, last: int) -> list[Bar]:
        low, high = lanes.from_s + first * HOUR_S, lanes.from_s + (last + 1) * HOUR_S
        return [bar for bar in bars if bar.end_s > low and bar.start_s < high]

    kept = inside(first, last)
    while first > 0 or last < hours - 1:
        wider = max(0, first - 1), min(hours - 1, last + 1)
        more = inside(*wider)
        if len(more) > most:
            break
        (first, last), kept = wider, more
    nodes = len(lanes.nodes)
    while len(kept) > most and nodes > NODES_PER_PAGE:
        nodes -= NODES_PER_PAGE
        kept = [bar for bar in kept if bar.node < nodes]
    low, high = lanes.from_s + first * HOUR_S, min(lanes.to_s, lanes.from_s + (last + 1) * HOUR_S)
    return Lanes(low, high, lanes.nodes[:nodes], lanes.segments), kept


def hours_of(lanes: Lanes) -> int:
    return max(1, math.ceil((lanes.to_s - lanes.from_s) / HOUR_S - 1e-9))


def busiest_hour(lanes: Lanes, bars: Sequence[Bar]) -> int:
    """The hour (counted from `lanes.from_s`) in which most bars start."""
    last = hours_of(lanes) - 1
    starts = Counter(min(last, max(0, int((bar.start_s - lanes.from_s) // HOUR_S))) for bar in bars)
    return max(sorted(starts), key=lambda hour: starts[hour], default=0)


@dataclass(frozen=True)
class Palette:
    """Which tenant has which colour class."""

    tenants: tuple[str, ...]

    def tenant(self, name: str) -> int:
        return self.tenants.index(name) if name in self.tenants else TENANT_COLOURS


def palette_of(found: Sequence[Picture]) -> Palette:
    """Colours for the tenants that held the most GPU time."""
    held: Counter[str] = Counter()
    for picture in found:
        for bar in picture.bars:
            held[bar.segment.tenant] += round(bar.span * (bar.end_s - bar.start_s))
    ranked = heapq.nsmallest(TENANT_COLOURS, held, key=lambda tenant: (-held[tenant], tenant))
    return Palette(tuple(ranked))


def describe(bar: Bar, node: str) -> str:
    segment = bar.segment
    doing = "runs" if segment.kind == "run" else "starts or stops"
    owner = f" of {segment.tenant}" if segment.tenant else ""
    size = f"{gpus(segment.num_gpus)} GPU{'' if segment.num_gpus == 1 else 's'}"
    return (
        f"{segment.job_id}{owner}, {size}, {doing} on {node} for {duration(segment.end_s - segment.start_s)}"
    )


def hour_name(start_s: float, calendar: Calendar) -> str:
    """
    >>> hour_name(90_000.0, Calendar(None))
    'hour from 1 d 1 h to 1 d 2 h after the first submission'
    """
    end_s = start_s + HOUR_S
    since = f"hour from {duration(start_s)} to {duration(end_s)} after the first submission"
    dates = calendar.span(start_s, end_s)
    return f"{since} ({dates})" if dates else since


def occupancy(picture: Picture, hour: int) -> list[tuple[str, str, str]]:
    """For each node of an hour: name, share of its GPU time in use, number of jobs."""
    start = picture.lanes.from_s + hour * HOUR_S
    end = start + HOUR_S
    busy: Counter[int] = Counter()
    jobs: dict[int, set[str]] = defaultdict(set)
    for bar in picture.bars:
        shared_s = min(end, bar.end_s) - max(start, bar.start_s)
        if shared_s > 0:
            busy[bar.node] += round(1000 * bar.span * shared_s)
            jobs[bar.node].add(bar.segment.job_id)
    return [
        (node.name, percent(busy[i] / (1000 * HOUR_S * node.gpus)), plural(len(jobs[i]), "job"))
        for i, node in enumerate(picture.lanes.nodes)
    ]
