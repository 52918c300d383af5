"""Use of the cluster and length of the queue over time: one small panel for each policy."""

from __future__ import annotations

from collections.abc import Sequence

from .charts import shorten
from .dates import Calendar
from .series import Buckets
from .svg import Scale, drawing, element, line, stairs, time_ticks, words
from .text import count, duration, unbroken

MOST_STEPS = 240
"""Steps drawn at most; longer series are averaged over neighbouring buckets."""


def panel(
    name: str,
    policy: str,
    buckets: Buckets,
    *,
    colour: str,
    capacity: float,
    longest_queue: float,
    until_s: float,
    last_arrival_s: float,
    calendar: Calendar,
    width: float,
) -> str:
    """GPUs in use above, waiting jobs below, on one time axis.

    Args:
        capacity: GPUs of the cluster, top of the upper scale.
        longest_queue: top of the lower scale, shared by all panels.
        until_s: end of the time axis, shared by all panels.
        calendar: puts dates under the time axis where it knows them.
    """
    left, right = 44.0, width - 8
    use_top, use_bottom, queue_top, queue_bottom = 44.0, 126.0, 158.0, 218.0
    x = Scale(0.0, until_s, left, right)
    use = Scale(0.0, capacity, use_bottom, use_top)
    queue = Scale(0.0, longest_queue or 1.0, queue_bottom, queue_top)
    edges, used, waiting = coarse(buckets)
    peak = max(waiting, default=0.0)
    step = f"{duration(edges[1] - edges[0])} means, " if waiting else ""
    title = f"{policy}: GPUs in use and waiting jobs over time; {step}at most {count(peak)} jobs waiting"
    marks = [
        words(left, 14, shorten(policy, width - left), class_=f"label text-{colour}"),
        words(left, use_top - 8, "GPUs in use", class_="axis"),
        words(left, queue_top - 8, f"jobs waiting: {step}at most {count(peak)}", class_="axis"),
    ]
    # Lines upright leave the space between the panels to the words there.
    panels = ((use_top, use_bottom), (queue_top, queue_bottom))
    ticks = x.ticks(time_ticks, 62)
    for tick in ticks:
        marks += [line(x(tick), top, x(tick), bottom, class_="grid") for top, bottom in panels]
        marks.append(
            words(x(tick), queue_bottom + 16, unbroken(duration(tick)), text_anchor="middle", class_="tick")
        )
    dates = calendar.ticks(ticks)
    for tick, date in zip(ticks, dates, strict=False):
        marks.append(words(x(tick), queue_bottom + 31, date, text_anchor="middle", class_="tick"))
    for scale, top in ((use, capacity), (queue, longest_queue)):
        for value in (0.0, top):
            marks.append(line(left, scale(value), right, scale(value), class_="grid"))
            marks.append(words(left - 6, scale(value) + 4, count(value), text_anchor="end", class_="tick"))
    marks.append(_area(x, use, edges, used, colour))
    marks.append(_area(x, queue, edges, waiting, colour))
    if 0 < last_arrival_s < until_s:
        at = x(last_arrival_s)
        marks += [line(at, top, at, bottom, class_="mark") for top, bottom in panels]
    return drawing(name, width, queue_bottom + (41 if dates else 26), title, *marks)


def _area(x: Scale, y: Scale, edges: Sequence[float], levels: Sequence[float], colour: str) -> str:
    if not levels:
        return ""
    outline = stairs([x(edge) for edge in edges], [y(level) for level in levels])
    closed = f"{outline}V{y.start:.1f}H{x(edges[0]):.1f}Z"
    return element("path", d=closed, class_=f"area fill-{colour}") + element(
        "path", d=outline, class_=f"line thin line-{colour}"
    )


def coarse(buckets: Buckets, most: int = MOST_STEPS) -> tuple[list[float], list[float], list[float]]:
    """Edges of the steps, GPUs in use and jobs waiting, averaged so that there are `most` steps at most.

    >>> coarse(Buckets(0.0, 60.0, (2.0, 4.0, 6.0), (1.0,) * 3, (0.0, 1.0, 5.0), (0.0,) * 3), most=2)
    ([0.0, 120.0, 180.0], [3.0, 6.0], [0.5, 5.0])
    """
    total = len(buckets.used_gpus)
    stride = max(1, -(-total // most))
    starts = range(0, total, stride)
    edges = [buckets.start_s + buckets.width_s * min(start, total) for start in [*starts, total]]
    used, waiting = (
        [sum(values[start : start + stride]) / len(values[start : start + stride]) for start in starts]
        for values in (buckets.used_gpus, buckets.pending_jobs)
    )
    return edges, used, waiting
