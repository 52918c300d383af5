"""Which job held which GPUs of which node: the picture, and its data for the browser.

The page shows one hour of one policy, drawn here; the script redraws it for another
hour, policy, page of nodes or colouring from `payload`, with the geometry below.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .charts import element_title, shorten
from .records import LaneNode, Lanes, Segment
from .svg import Scale, drawing, element, line, words
from .text import duration, gpus, plural

HOUR_S = 3600.0
MOST_BARS = 40_000
"""Bars embedded in the page over all policies; where there are more, hours, then nodes are left out."""
MOST_TOOL_TIPS = 1500
"""A drawing with more bars goes without tool tips (the script has them anyway)."""
NODES_PER_PAGE = 32
TENANT_COLOURS = 7
"""Tenants with a colour of their own; the others share one."""
SIZES = (
    (1, "< 1 GPU"),
    (2, "1 GPU"),
    (5, "2–4 GPUs"),
    (9, "5–8 GPUs"),
    (17, "9–16 GPUs"),
    (math.inf, "17 or more"),
)
"""Upper bound (exclusive) and name of each size class."""


def size_class(num_gpus: float) -> int:
    """Index into SIZES.

    >>> [SIZES[size_class(n)][1] for n in (0.5, 1, 4, 8, 64)]
    ['< 1 GPU', '1 GPU', '2–4 GPUs', '5–8 GPUs', '17 or more']
    """
    return next(index for index, (bound, _) in enumerate(SIZES) if num_gpus < bound)


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


def node_height(nodes: Sequence[LaneNode]) -> float:
    """Pixels for one GPU, so that a page of nodes is neither tiny nor endless."""
    return min(9.0, max(1.8, 640 / max(1, sum(node.gpus for node in nodes))))


def draw(name: str, picture: Picture, hour: int, palette: Palette, by_tenant: bool, width: float) -> str:
    """One hour on the first page of nodes."""
    lanes, nodes = picture.lanes, picture.lanes.nodes[:NODES_PER_PAGE]
    unit, gap, left, top = node_height(nodes), 4.0, 74.0, 8.0
    start = lanes.from_s + hour * HOUR_S
    end = start + HOUR_S
    x = Scale(start, end, left, width - 10)
    offsets = [top]
    for node in nodes:
        offsets.append(offsets[-1] + node.gpus * unit + gap)
    every = max(1, math.ceil(13 / (offsets[1] - offsets[0])))
    marks = []
    for index, node in enumerate(nodes):
        height = node.gpus * unit
        marks.append(
            element("rect", x=left, y=offsets[index], width=x.end - left, height=height, class_="lane")
        )
        if index % every == 0:
            middle = offsets[index] + height / 2 + 4
            marks.append(
                words(left - 8, middle, shorten(node.name, left - 10), text_anchor="end", class_="tick")
            )
    shown = [bar for bar in picture.bars if bar.node < len(nodes) and bar.end_s > start and bar.start_s < end]
    for bar in shown:
        segment = bar.segment
        colour = f"t{palette.tenant(segment.tenant)}" if by_tenant else f"z{size_class(segment.num_gpus)}"
        tips = [element_title(describe(bar, nodes[bar.node].name))] if len(shown) <= MOST_TOOL_TIPS else []
        marks.append(
            element(
                "rect",
                *tips,
                x=x(bar.start_s),
                y=offsets[bar.node] + bar.first * unit,
                width=max(0.8, x(bar.end_s) - x(bar.start_s)),
                height=max(0.6, bar.span * unit - 0.6),
                class_=f"job {colour}" + (" overhead" if segment.kind == "overhead" else ""),
            )
        )
    bottom = offsets[-1]
    for minute in (0, 15, 30, 45, 60):
        at = x(start + 60 * minute)
        marks.append(line(at, bottom, at, bottom + 4, class_="mark"))
        anchor = "end" if minute == 60 else "middle"
        marks.append(words(at, bottom + 18, f"+{minute} m", text_anchor=anchor, class_="tick"))
    return drawing(
        name, width, bottom + 24, f"Jobs on nodes under {picture.policy}, {hour_name(start)}", *marks
    )


def describe(bar: Bar, node: str) -> str:
    segment = bar.segment
    doing = "runs" if segment.kind == "run" else "starts or stops"
    owner = f" of {segment.tenant}" if segment.tenant else ""
    size = f"{gpus(segment.num_gpus)} GPU{'' if segment.num_gpus == 1 else 's'}"
    return (
        f"{segment.job_id}{owner}, {size}, {doing} on {node} for {duration(segment.end_s - segment.start_s)}"
    )


def hour_name(start_s: float) -> str:
    """
    >>> hour_name(90_000.0)
    'hour from 1 d 1 h to 1 d 2 h after the first submission'
    """
    return f"hour from {duration(start_s)} to {duration(start_s + HOUR_S)} after the first submission"


def payload(found: Sequence[Picture], palette: Palette, hour: int) -> str:
    """What the script needs, as JSON that is safe inside a script element."""
    job_codes: dict[tuple[str, str, float], int] = {}
    policies: list[dict[str, Any]] = []
    for picture in found:
        origin = picture.lanes.from_s
        flat: list[float] = []
        for bar in picture.bars:
            segment = bar.segment
            job = job_codes.setdefault((segment.job_id, segment.tenant, segment.num_gpus), len(job_codes))
            start, end = round(bar.start_s - origin), round(bar.end_s - origin)
            flat += [bar.node, bar.first, bar.span, start, end - start, job, int(segment.kind == "overhead")]
        policies.append(
            {
                "policy": picture.policy,
                "from": origin,
                "hours": hours_of(picture.lanes),
                "nodes": [[node.name, node.gpus] for node in picture.lanes.nodes],
                "bars": flat,
            }
        )
    tenants = {
        tenant: code for code, tenant in enumerate(dict.fromkeys(tenant for _, tenant, _ in job_codes))
    }
    document = {
        "policies": policies,
        "tenants": [[tenant, palette.tenant(tenant)] for tenant in tenants],
        "jobs": [
            [job_id, tenants[tenant], num_gpus, size_class(num_gpus)]
            for job_id, tenant, num_gpus in job_codes
        ],
        "hour": hour,
        "page": NODES_PER_PAGE,
    }
    return script_json(document)


def script_json(document: Any) -> str:
    r"""JSON without the characters that could end a script element.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    compact = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return compact.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def occupancy(picture: Picture, hour: int) -> list[tuple[str, str, str]]:
    """For each node of an hour: name, share of its GPU time in use, number of jobs."""
    from .text import percent

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
