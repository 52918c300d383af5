"""The charts of the report, each drawn for a given width.

A chart gets `width` in pixels because the page holds it twice, for a desk and for a
phone, with text of the same size in both. `colours` maps a policy to a colour class
of the style sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .labels import Box, around_points, leader, spread
from .svg import FONT, Scale, drawing, element, line, number_ticks, path, text_width, time_ticks, words
from .text import count, duration, unbroken, whole_percent

Colours = Mapping[str, str]

SHORTEST_WAIT_S = 1.0
"""Shorter waits, which a logarithmic axis can't show, are drawn here."""


@dataclass(frozen=True)
class Axis:
    """What an axis measures: its title, its tick values and how they are written."""

    title: str
    choose: Callable[[float, float, int, bool], list[float]]
    show: Callable[[float], str]


TIME = (time_ticks, lambda value: unbroken(duration(value)))
NUMBER = (number_ticks, count)


def bottom_axis(x: Scale, axis: Axis, top: float, bottom: float, apart: float = 70) -> list[str]:
    """Vertical grid lines with their values below and the title under them."""
    marks = []
    for tick in x.ticks(axis.choose, apart):
        at = x(tick)
        marks.append(line(at, top, at, bottom, class_="grid"))
        marks.append(words(at, bottom + 18, axis.show(tick), text_anchor="middle", class_="tick"))
    if axis.title:
        marks.append(words(x.end, bottom + 36, axis.title, text_anchor="end", class_="axis"))
    return marks


def left_axis(y: Scale, axis: Axis, left: float, right: float, apart: float = 45) -> list[str]:
    """Horizontal grid lines with their values at the left and the title above the highest."""
    marks = []
    for tick in y.ticks(axis.choose, apart):
        at = y(tick)
        marks.append(line(left, at, right, at, class_="grid"))
        marks.append(words(left - 6, at + 4, axis.show(tick), text_anchor="end", class_="tick"))
    if axis.title:
        marks.append(words(0, y.end - 14, axis.title, class_="axis"))
    return marks


@dataclass(frozen=True)
class Dot:
    """One policy in a scatter plot."""

    policy: str
    x: float
    y: float


def scatter(
    name: str, title: str, dots: Sequence[Dot], x_axis: Axis, y_axis: Axis, colours: Colours, width: float
) -> str:
    """Policies by two measures; lower left is better."""
    height, left, right, top, bottom = width * 0.72, 62.0, width - 14, 34.0, width * 0.72 - 44
    x = from_zero([dot.x for dot in dots], left, right)
    y = from_zero([dot.y for dot in dots], bottom, top)
    points = [(x(dot.x), y(dot.y)) for dot in dots]
    radius = 5.5
    names = [shorten(dot.policy, 0.5 * width) for dot in dots]
    # Down to the values below the axis, so that points on it may have their names beside them.
    frame = Box(left, top - 6, right - left, bottom + 7 - (top - 6))
    boxes = around_points(points, names, frame, radius)
    marks = bottom_axis(x, _named(x_axis, x), top, bottom) + left_axis(y, _named(y_axis, y), left, right)
    for dot, label, (px, py), box in reversed(list(zip(dots, names, points, boxes, strict=True))):
        colour = colours[dot.policy]
        ends = leader((px, py), box, radius)
        if ends:
            marks.append(line(*ends[0], *ends[1], class_="leader"))
        about = f"{dot.policy}: {x_axis.title} {x_axis.show(dot.x)}, {y_axis.title} {y_axis.show(dot.y)}"
        marks.append(
            element("circle", element_title(about), cx=px, cy=py, r=radius, class_=f"dot fill-{colour}")
        )
        marks.append(words(box.x, box.y + FONT - 1, label, class_=f"label text-{colour}"))
    return drawing(name, width, height, title, *marks)


def _named(axis: Axis, scale: Scale) -> Axis:
    return replace(axis, title=f"{axis.title}, logarithmic") if scale.log else axis


def element_title(content: str) -> str:
    """The tool tip of the element around it."""
    import html

    return element("title", html.escape(content))


CRUSHED = 40
"""A largest value so many times the least leaves no room to tell the small ones apart on a linear axis."""


def from_zero(values: Sequence[float], start: float, end: float) -> Scale:
    """A linear scale from 0; logarithmic where the largest value would crush the others.

    >>> from_zero([90, 100], 0, 10).low, from_zero([1, 100], 0, 10).log
    (0.0, True)
    """
    high, low = max(values), min(values)
    if low > 0 and high / low > CRUSHED:
        return Scale(low / 1.6, high * 1.3, start, end, log=True)
    return Scale(0.0, 1.08 * high or 1.0, start, end)


def fitting(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale on which the values lie well apart: as `from_zero`, or around values far from 0 alone.

    >>> scale = fitting([90, 100], 0, 10); 80 < scale.low < 90
    True
    >>> fitting([30, 100], 0, 10).low
    0.0
    """
    high, low = max(values), min(values)
    if low > 0.45 * high:
        room = 0.15 * (high - low) or 0.1 * high
        return Scale(low - room, high + room, start, end)
    return from_zero(values, start, end)


def _wait_scale(values: Sequence[float], start: float, end: float) -> Scale:
    if not mostly_crushed(values):
        return Scale(0.0, 1.02 * max(values) or 1.0, start, end)
    shortest = max(min(values), SHORTEST_WAIT_S)
    return Scale(shortest, max(*values, 2 * shortest), start, end, log=True)


def mostly_crushed(values: Sequence[float]) -> bool:
    """Whether most of the values would lie at the very start of a linear axis.

    >>> mostly_crushed([2.0, 5000.0, 8000.0, 9000.0]), mostly_crushed([2.0, 5.0, 100.0, 9000.0])
    (False, True)
    """
    small = sum(value * CRUSHED < max(values) for value in values)
    return 2 * small > len(values)


@dataclass(frozen=True)
class Curve:
    """A distribution: `values[i]` is the time within which the share `shares[i]` is done."""

    policy: str
    values: Sequence[float]
    shares: Sequence[float]
    note: str


def distribution(
    name: str,
    title: str,
    note_title: str,
    curves: Sequence[Curve],
    colours: Colours,
    strong: set[str],
    width: float,
) -> str:
    """Cumulative distributions on a logarithmic time axis, named and annotated at the side or below.

    Args:
        note_title: heading above the curves' notes.
        strong: policies drawn bolder than the others.
    """
    aside = width > 600
    rows = len(curves) + 1
    names = [shorten(curve.policy, 200) for curve in curves]
    name_width = max(map(text_width, names))
    note_width = name_width + 40 + max(text_width(curve.note) for curve in curves)
    plot_height = 330.0 if aside else 270.0
    left, top = 44.0, 34.0
    right = width - note_width - 26 if aside else width - 10
    bottom = top + plot_height
    height = bottom + 44 + (0 if aside else 19 * rows + 8)
    low = max(1.0, min(_first_positive(curve.values) for curve in curves))
    high = max(max(curve.values[-1] for curve in curves), 2 * low)
    x = Scale(low, high, left, right, log=True)
    y = Scale(0.0, 1.0, bottom, top)
    axes = bottom_axis(x, Axis("job completion time, logarithmic", *TIME), top, bottom)
    axes += left_axis(
        y, Axis("share of the jobs done", lambda *_: [0.0, 0.25, 0.5, 0.75, 1.0], whole_percent), left, right
    )
    lines = []
    for curve in sorted(curves, key=lambda curve: curve.policy in strong):
        emphasis = " strong" if curve.policy in strong else ""
        points = [(x(value), y(share)) for value, share in zip(curve.values, curve.shares, strict=True)]
        lines.append(path(points, class_=f"line line-{colours[curve.policy]}{emphasis}"))
    note_x, note_y = (right + 26, y(0.5) - 19 * rows / 2 + 12) if aside else (left, bottom + 58)
    notes = [words(note_x, note_y, note_title, class_="axis")]
    for row, (curve, label) in enumerate(zip(curves, names, strict=True), start=1):
        at = note_y + 19 * row
        colour = colours[curve.policy]
        notes.append(line(note_x, at - 4, note_x + 18, at - 4, class_=f"line line-{colour}"))
        notes.append(words(note_x + 24, at, label, class_=f"label text-{colour}"))
        notes.append(words(note_x + 36 + name_width, at, curve.note, class_="value"))
    return drawing(name, width, height, title, *axes, *lines, *notes)


def _first_positive(values: Sequence[float]) -> float:
    return next((value for value in values if value > 0), 1.0)


def dumbbells(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    first: str,
    second: str | None,
    colours: Colours,
    width: float,
) -> str:
    """One row a group with a dot for each policy on a time axis.

    Args:
        rows: name of the group, and seconds by policy.
        first, second: policies drawn large and joined by a bar; the others are small dots.
    """
    step, top = 26.0, 46.0
    left = min(0.34 * width, 12 + max(text_width(group) for group, _ in rows))
    right = width - 16
    bottom = top + step * len(rows)
    values = [value for _, by_policy in rows for value in by_policy.values()]
    x = _wait_scale(values, left + 16, right)
    marks = bottom_axis(x, _named(Axis("mean wait", *TIME), x), top - 6, bottom)
    named = [policy for policy in (second, first) if policy is not None]
    for row, (group, by_policy) in enumerate(rows):
        at = top + step * (row + 0.5)
        marks.append(words(left, at + 4, shorten(group, left - 4), text_anchor="end", class_="group"))
        marks.append(line(left + 16, at, right, at, class_="grid"))
        if second is not None and second in by_policy and first in by_policy:
            marks.append(line(x(by_policy[first]), at, x(by_policy[second]), at, class_="bar"))
        for policy, value in by_policy.items():
            if policy not in named:
                tip = element_title(f"{group}, {policy}: {duration(value)}")
                marks.append(element("circle", tip, cx=x(value), cy=at, r=3, class_="dot faint"))
        for policy in named:
            if policy in by_policy:
                tip = element_title(f"{group}, {policy}: {duration(by_policy[policy])}")
                dot = element(
                    "circle", tip, cx=x(by_policy[policy]), cy=at, r=5.5, class_=f"dot fill-{colours[policy]}"
                )
                marks.append(dot)
            if second is None:
                shown = duration(by_policy[policy])
                marks.append(words(x(by_policy[policy]) + 10, at + 4, shown, class_="value halo"))
    heads = [(x(rows[0][1][policy]), policy) for policy in named if policy in rows[0][1]]
    widths = {policy: text_width(policy) for _, policy in heads}
    gap = sum(widths.values()) / 2 + 12
    for (_, policy), at in zip(
        heads, spread([at for at, _ in heads], gap, left + 30, right - 20), strict=True
    ):
        anchor = "end" if at + widths[policy] / 2 > width else "middle"
        marks.append(
            words(
                min(at, width) if anchor == "middle" else width,
                top - 16,
                policy,
                text_anchor=anchor,
                class_=f"label text-{colours[policy]}",
            )
        )
    return drawing(name, width, bottom + 44, title, *marks)


def shorten(content: str, width: float) -> str:
    """The text; where it is wider than `width`, with an ellipsis for its middle.

    >>> shorten("a-very-long-tenant-name", 90)
    'a-very…-name'
    """
    if text_width(content) <= width:
        return content
    keep = len(content) - 1
    while keep > 2 and text_width(_without_middle(content, keep)) > width:
        keep -= 1
    return _without_middle(content, keep)


def _without_middle(content: str, keep: int) -> str:
    return f"{content[: keep - keep // 2]}…{content[len(content) - keep // 2 :]}"


@dataclass(frozen=True)
class Trend:
    """A policy over capacities: mean, lowest and highest value at each."""

    policy: str
    points: Sequence[tuple[float, float, float, float]]


def trends(
    name: str,
    title: str,
    lines: Sequence[Trend],
    y_title: str,
    x_title: str,
    colours: Colours,
    strong: set[str],
    width: float,
) -> str:
    """A measure against the capacity, a line for each policy, named at its right end."""
    height, left, top = width * 0.8, 58.0, 34.0
    names = [shorten(item.policy, 0.35 * width) for item in lines]
    right = width - 14 - max(map(text_width, names))
    bottom = height - 44
    capacities = sorted({point[0] for item in lines for point in item.points})
    values = [value for item in lines for point in item.points for value in point[1:]]
    x = Scale(capacities[0], capacities[-1], left + 14, right - 14)
    y = fitting(values, bottom, top)
    shown = [capacities[0]]
    for capacity in capacities[1:]:
        if x(capacity) - x(shown[-1]) > 34:
            shown.append(capacity)
    marks = bottom_axis(x, Axis(x_title, lambda *_: shown, count), top, bottom)
    marks += left_axis(y, Axis(y_title, *TIME), left, right)
    ends = spread([y(item.points[-1][1]) for item in lines], 15, top, bottom)
    for item, label, end in sorted(
        zip(lines, names, ends, strict=True), key=lambda row: row[0].policy in strong
    ):
        colour = colours[item.policy]
        aside = 3.0 * (lines.index(item) - (len(lines) - 1) / 2)
        for capacity, _, low, high in item.points:
            if high > low:
                at = x(capacity) + aside
                marks.append(line(at, y(low), at, y(high), class_=f"whisker line-{colour}"))
        points = [(x(capacity), y(value)) for capacity, value, _, _ in item.points]
        marks.append(
            path(points, class_=f"line line-{colour}" + (" strong" if item.policy in strong else ""))
        )
        for (px, py), (capacity, value, *_) in zip(points, item.points, strict=True):
            tip = element_title(f"{item.policy}, {count(capacity)}: {duration(value)}")
            marks.append(element("circle", tip, cx=px, cy=py, r=3.5, class_=f"dot fill-{colour}"))
        if abs(end - points[-1][1]) > 6:
            marks.append(line(points[-1][0] + 5, points[-1][1], right + 6, end, class_="leader"))
        marks.append(words(right + 8, end + 4, label, class_=f"label text-{colour}"))
    return drawing(name, width, height, title, *marks)
