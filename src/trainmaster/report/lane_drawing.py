"""The picture of jobs on nodes; report.js draws it with the same geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .charts import element_title, shorten
from .lanes import HOUR_S, NODES_PER_PAGE, Bar, Palette, Picture, describe
from .series import LaneNode
from .sizes import size_class
from .svg import Scale, drawing, element, line, words

MOST_TOOL_TIPS = 1500
"""A drawing with more bars goes without tool tips (the script has them anyway)."""
LEFT, RIGHT, TOP, BOTTOM = 74.0, 10.0, 8.0, 24.0
"""Room around the bands: for the nodes' names at the left, for the minutes below."""
BETWEEN_NODES = 4.0
BETWEEN_JOBS = 0.6
"""Left free below each block, and behind one that is wide enough, so that neighbours are seen apart."""
NAME_HEIGHT = 13.0
"""Pixels that a node's name needs; where bands are thinner, some names are left out."""
MINUTES = (0, 15, 30, 45, 60)


def pixels_per_gpu(nodes: Sequence[LaneNode]) -> float:
    """So that a page of nodes is neither tiny nor endless."""
    return min(9.0, max(1.8, 640 / max(1, sum(node.gpus for node in nodes))))


def draw(
    name: str, picture: Picture, hour: int, hour_name: str, palette: Palette, by_tenant: bool, width: float
) -> str:
    """One hour on the first page of nodes."""
    nodes = picture.lanes.nodes[:NODES_PER_PAGE]
    start = picture.lanes.from_s + hour * HOUR_S
    x = Scale(start, start + HOUR_S, LEFT, width - RIGHT)
    unit = pixels_per_gpu(nodes)
    tops = [TOP]
    for node in nodes:
        tops.append(tops[-1] + node.gpus * unit + BETWEEN_NODES)
    shown = [
        bar
        for bar in picture.bars
        if bar.node < len(nodes) and bar.end_s > start and bar.start_s < start + HOUR_S
    ]
    marks = _bands(nodes, tops, unit, x)
    for bar in shown:
        tips = [element_title(describe(bar, nodes[bar.node].name))] if len(shown) <= MOST_TOOL_TIPS else []
        marks.append(_block(bar, tops[bar.node], unit, x, _colour(bar, palette, by_tenant), tips))
    marks += _minutes(x, tops[-1])
    title = f"Jobs on nodes under {picture.policy}, {hour_name}"
    return drawing(name, width, tops[-1] + BOTTOM, title, *marks)


def _bands(nodes: Sequence[LaneNode], tops: Sequence[float], unit: float, x: Scale) -> list[str]:
    """A grey band for each node, and as many of their names as have the room."""
    every = max(1, math.ceil(NAME_HEIGHT / (tops[1] - tops[0])))
    marks = []
    for index, (node, top) in enumerate(zip(nodes, tops, strict=False)):
        height = node.gpus * unit
        marks.append(element("rect", x=x.start, y=top, width=x.end - x.start, height=height, class_="lane"))
        if index % every == 0:
            label = shorten(node.name, x.start - 10)
            marks.append(words(x.start - 8, top + height / 2 + 4, label, text_anchor="end", class_="tick"))
    return marks


def _colour(bar: Bar, palette: Palette, by_tenant: bool) -> str:
    if by_tenant:
        return f"t{palette.tenant(bar.segment.tenant)}"
    return f"z{size_class(bar.segment.num_gpus)}"


def _block(bar: Bar, top: float, unit: float, x: Scale, colour: str, tips: Sequence[str]) -> str:
    width = x(bar.end_s) - x(bar.start_s)
    return element(
        "rect",
        *tips,
        x=x(bar.start_s),
        y=top + bar.first * unit,
        width=width - BETWEEN_JOBS if width > 4 * BETWEEN_JOBS else max(0.8, width),
        height=max(0.6, bar.span * unit - BETWEEN_JOBS),
        class_=f"job {colour}" + (" overhead" if bar.segment.kind == "overhead" else ""),
    )


def _minutes(x: Scale, bottom: float) -> list[str]:
    marks = []
    for minute in MINUTES:
        at = x(x.low + 60 * minute)
        marks.append(line(at, bottom, at, bottom + 4, class_="mark"))
        anchor = "end" if minute == MINUTES[-1] else "middle"
        marks.append(words(at, bottom + 18, f"+{minute} m", text_anchor=anchor, class_="tick"))
    return marks
