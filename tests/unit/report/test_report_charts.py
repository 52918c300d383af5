"""Scales, ticks, labels and drawings."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainmaster.report import charts
from trainmaster.report.dates import Calendar
from trainmaster.report.labels import Box, around_points, leader, spread
from trainmaster.report.series import Buckets
from trainmaster.report.svg import Scale, element, number_ticks, stairs, text_width, time_ticks, words
from trainmaster.report.text import duration
from trainmaster.report.timeline import coarse, panel

COLOURS = {"fifo": "cb", "srtf": "c0", "las": "c1"}
positive = st.floats(1e-3, 1e9)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 20))
def test_number_ticks_are_few_and_inside(low: float, span: float, most: int) -> None:
    high = low + span
    ticks = number_ticks(low, high, most)
    assert len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in ticks)


@example(low=0.5, span=400_000_001.0, most=2, log=False)
@given(positive, positive, st.integers(2, 20), st.booleans())
def test_time_ticks_are_few_inside_and_rising(low: float, span: float, most: int, log: bool) -> None:
    ticks = time_ticks(low, low + span, most, log)
    assert all(low <= tick <= low + span * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= most + 1 or log


@example(3 * 86_400 - 1200.0, 3300.0, 4)
@given(st.floats(0, 1e8), st.floats(1.0, 1e8), st.integers(2, 12))
def test_time_ticks_read_unlike(low: float, span: float, most: int) -> None:
    ticks = time_ticks(low, low + span, most)
    assert ticks
    assert len({duration(tick) for tick in ticks}) == len(ticks)


def test_time_ticks_look_round() -> None:
    assert time_ticks(0, 10 * 86_400, 3) == [0, 432_000, 864_000]
    assert time_ticks(1, 864_000, 9, log=True) == [1, 10, 60, 600, 3600, 18_000, 86_400, 864_000]


@given(st.floats(0, 1e9), st.booleans())
def test_a_scale_stays_within_its_ends(value: float, log: bool) -> None:
    assert 20 <= Scale(1.0, 1e6, 20, 120, log)(value) <= 120


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_spread_labels_keep_apart_in_order_and_inside(wanted: list[float]) -> None:
    placed = spread(wanted, 15, 0, 300)
    ordered = sorted(range(len(wanted)), key=lambda i: wanted[i])
    for first, second in pairwise(ordered):
        assert placed[second] - placed[first] >= 15 - 1e-6
    assert all(-1e-6 <= at <= 300 + 1e-6 for at in placed)


def test_spread_leaves_alone_what_is_apart() -> None:
    assert spread([10, 100], 15, 0, 300) == [10, 100]
    assert spread([0, 0], 20, 0, 300) == [0, 20]


def test_names_of_crowded_points_do_not_touch() -> None:
    points = [(200 + 3 * i, 150 + 2 * (i % 3)) for i in range(9)]
    names = ["fifo", "fifo(backfill=greedy)", "sjf", "srtf", "srsf", "las", "gittins", "drf", "timeslice"]
    frame = Box(0, 0, 500, 350)
    boxes = around_points(points, names, frame, 5.5)
    for i, box in enumerate(boxes):
        assert box.outside(frame) == pytest.approx(0)
        assert sum(box.overlap(other) for other in boxes[:i]) == pytest.approx(0)


def test_leader_lines_cross_no_name() -> None:
    """Policies that never preempt lie side by side on the axis."""
    points = [(150.0 + 9 * i, 240.0) for i in range(6)]
    names = ["fifo", "fifo(backfill=easy)", "fifo(backfill=greedy)", "sjf", "drf", "priority"]
    frame = Box(60, 30, 290, 217)
    boxes = around_points(points, names, frame, 5.5)
    for i, (point, box) in enumerate(zip(points, boxes, strict=True)):
        line = leader(point, box, 5.5)
        assert box.outside(frame) == pytest.approx(0)
        for step in range(101) if line else []:
            x, y = (a + step / 100 * (b - a) for a, b in zip(*line, strict=True))  # type: ignore[misc]
            others = [other for j, other in enumerate(boxes) if j != i]
            assert not any(Box(x, y, 0.1, 0.1).overlap(other) for other in others), (names[i], x, y)


def test_names_at_the_edge_stay_inside() -> None:
    frame = Box(0, 0, 500, 350)
    for corner in ((498, 2), (2, 348), (499, 349)):
        (box,) = around_points([corner], ["fifo(backfill=greedy)"], frame, 5.5)
        assert box.outside(frame) == pytest.approx(0)


def test_too_many_labels_share_the_room_evenly() -> None:
    assert spread([50.0] * 5, 15, 0, 40) == pytest.approx([0, 10, 20, 30, 40])


def test_text_and_attributes_are_escaped() -> None:
    assert words(0, 0, "<b>&") == '<text x="0" y="0">&lt;b&gt;&amp;</text>'
    assert element("g", id='"><script>') == '<g id="&quot;&gt;&lt;script&gt;"/>'


def test_stairs() -> None:
    assert stairs([0, 10, 20, 30], [5, 5, 8]) == "M0 5H10H20V8H30"


def test_a_coarse_series_keeps_the_mean() -> None:
    levels = tuple(float(i % 7) for i in range(1000))
    edges, used, _ = coarse(Buckets(60.0, 10.0, levels, levels, levels, levels), most=90)
    assert len(used) <= 90 and len(edges) == len(used) + 1
    assert edges[0] == 60 and edges[-1] == 60 + 10 * 1000
    area = sum(level * (end - start) for level, (start, end) in zip(used, pairwise(edges), strict=True))
    assert area == pytest.approx(10 * sum(levels))


def test_the_longest_queue_is_the_drawn_mean() -> None:
    waiting = tuple([0.0, 100.0] * 240)
    buckets = Buckets(0.0, 1800.0, waiting, waiting, waiting, waiting)
    room = {"colour": "cb", "capacity": 100.0, "longest_queue": 50.0, "until_s": 864_000.0}
    drawing = panel("e", "fifo", buckets, **room, last_arrival_s=100.0, calendar=Calendar(None), width=317.0)  # type: ignore[arg-type]
    assert ">jobs waiting: 1 h means, at most 50</text>" in drawing
    assert 44 + text_width("jobs waiting: 12 h means, at most 1,234") < 317


def test_no_line_runs_through_the_words_between_the_panels() -> None:
    levels = (1.0, 2.0)
    room = {"colour": "cb", "capacity": 8.0, "longest_queue": 2.0, "until_s": 7200.0}
    buckets = Buckets(0.0, 3600.0, levels, levels, levels, levels)
    drawing = panel("e", "fifo", buckets, **room, last_arrival_s=3000.0, calendar=Calendar(None), width=317.0)  # type: ignore[arg-type]
    lines: list[str] = re.findall(r"<line [^>]*>", drawing)
    ends = [[float(re.search(rf' {name}="([^"]+)"', tag)[1]) for name in ("y1", "y2")] for tag in lines]  # type: ignore[index]
    (label,) = [float(y) for y in re.findall(r'y="([^"]+)"[^>]*>jobs waiting', drawing)]
    assert sum('class="mark"' in tag for tag in lines) == 2
    assert not any(low < label < high for low, high in ends)


def drawings(width: float) -> list[str]:
    time, number = charts.Axis("mean JCT", *charts.TIME), charts.Axis("preemptions", *charts.NUMBER)
    dots = [charts.Dot("fifo", 9e4, 0), charts.Dot("srtf", 1.8e4, 4895), charts.Dot("las", 2.5e4, 5098)]
    curves = [charts.Curve(policy, [1.0, 60.0, 9e5], [0, 0.5, 1], "1 m") for policy in COLOURS]
    rows = [("vc<0>", {"fifo": 100.0, "srtf": 1.0, "las": 0.0}), ("vc1", {"fifo": 5.0})]
    lines = [charts.Trend(policy, [(8, 10, 9, 11), (16, 5, 5, 5)]) for policy in COLOURS]
    levels = (1.0, 2.0)
    buckets = Buckets(0.0, 3600.0, levels, levels, levels, levels)
    return [
        charts.scatter("a", "A & B", dots, time, number, COLOURS, width),
        charts.distribution("b", "B", "half", curves, COLOURS, {"srtf"}, width),
        charts.dumbbells("c", "C", rows, "srtf", "fifo", COLOURS, width),
        charts.dumbbells("c1", "C", rows, "fifo", None, COLOURS, width),
        charts.trends("d", "D", lines, "mean JCT", "nodes", COLOURS, {"srtf"}, width),
        panel(
            "e",
            "fifo",
            buckets,
            colour="cb",
            capacity=8,
            longest_queue=2,
            until_s=7200,
            last_arrival_s=100,
            calendar=Calendar(1.7e9),
            width=width,
        ),
    ]


@pytest.mark.parametrize("width", [350.0, 490.0, 1000.0])
def test_drawings_are_well_formed_and_stay_inside(width: float) -> None:
    for drawing in drawings(width):
        root = ElementTree.fromstring(drawing)
        assert root[0].tag == "title" and root[0].text
        assert root.get("aria-labelledby") == root[0].get("id")
        _, _, right, bottom = map(float, root.get("viewBox", "").split())
        assert right == width
        for part in root.iter():
            for name, limit in (("x", right), ("cx", right), ("x2", right), ("y", bottom), ("cy", bottom)):
                if name in part.attrib:
                    assert -1 <= float(part.attrib[name]) <= limit + 1


def test_both_axes_of_a_scatter_begin_at_0() -> None:
    """Else one of two like differences would look larger."""
    axis = charts.Axis("JCT", *charts.TIME)
    dots = [charts.Dot("srtf", 10 * 3600, 70 * 3600), charts.Dot("fifo", 20 * 3600, 80 * 3600)]
    drawing = charts.scatter("a", "A", dots, axis, axis, COLOURS, 500)
    assert drawing.count(">0\xa0s</text>") == 2 and "logarithmic" not in drawing
    far = [charts.Dot("srtf", 1, 70), charts.Dot("fifo", 90, 80)]
    assert charts.scatter("a", "A", far, axis, axis, COLOURS, 500).count("JCT, logarithmic</text>") == 1


def test_a_scatter_puts_better_lower_and_further_left() -> None:
    axis = charts.Axis("mean JCT", *charts.TIME)
    dots = [charts.Dot("srtf", 10, 10), charts.Dot("fifo", 20, 20)]
    root = ElementTree.fromstring(charts.scatter("a", "A", dots, axis, axis, COLOURS, 500))
    at = {
        circle.get("class"): (float(circle.get("cx", 0)), float(circle.get("cy", 0)))
        for circle in root.iter("circle")
    }
    good, bad = at["dot fill-c0"], at["dot fill-cb"]
    assert good[0] < bad[0] and good[1] > bad[1]
