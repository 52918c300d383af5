"""Parts of the page that look at runs as a whole: trade-offs, course over time, lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from . import charts, lane_data, lane_drawing, lanes, sizes, text
from .parts import HALF, WIDE, Cell, Figure, Table, figure
from .records import Records, Run
from .samples import slowest
from .series import Buckets
from .story import Comparison
from .timeline import coarse, panel


def tradeoffs(comparison: Comparison, colours: Mapping[str, str]) -> list[Figure]:
    """Mean JCT against the slowest hundredth, and against interruptions."""
    found = []
    mean = charts.Axis("mean JCT", *charts.TIME)
    unlucky = slowest(comparison.winner)
    tail = unlucky.name if unlucky.single else "the unluckiest 1 %"
    for name, axis, title in (
        ("p99_jct_s", charts.Axis("p99 JCT", *charts.TIME), f"The average job against {tail}"),
        ("preemptions", charts.Axis("preemptions", *charts.NUMBER), "The average job against interruptions"),
    ):
        dots = [
            charts.Dot(run.policy, x, y)
            for run in comparison.runs
            if (x := run["mean_jct_s"]) is not None and (y := run[name]) is not None
        ]
        if len(dots) > 1 and len({dot.y for dot in dots}) > 1:
            found.append(_tradeoff(name, title, dots, mean, axis, colours))
    return found


def _tradeoff(
    name: str,
    title: str,
    dots: Sequence[charts.Dot],
    x_axis: charts.Axis,
    y_axis: charts.Axis,
    colours: Mapping[str, str],
) -> Figure:
    subtitle = f"{x_axis.title} and {y_axis.title} by policy; lower left is better"

    def draw(unique: str, width: float) -> str:
        return charts.scatter(unique, f"{title}: {subtitle}", dots, x_axis, y_axis, colours, width)

    headings = [("policy", ""), (x_axis.title, ""), (y_axis.title, "")]
    rows = [
        [Cell(dot.policy), Cell(x_axis.show(dot.x), dot.x), Cell(y_axis.show(dot.y), dot.y)] for dot in dots
    ]
    return figure(title, subtitle, f"tradeoff-{name}", draw, HALF, Table(title, headings, rows))


@dataclass(frozen=True)
class Timeline:
    """One figure a policy; `columns` = how many stand side by side on a desk."""

    figures: list[Figure]
    columns: int
    last_arrival: str
    dates: str
    table: Table


def timeline(records: Records, comparison: Comparison, colours: Mapping[str, str]) -> Timeline | None:
    """GPUs in use and waiting jobs over time, for the runs that have a series."""
    series = [(run, records.series[run.key].buckets) for run in comparison.runs if run.key in records.series]
    series = [(run, buckets) for run, buckets in series if buckets.used_gpus]
    if not series:
        return None
    until_s = max(buckets.start_s + buckets.width_s * len(buckets.used_gpus) for _, buckets in series)
    queue = max(max(coarse(buckets)[2]) for _, buckets in series)
    most_used = max(max(buckets.used_gpus) for _, buckets in series)
    columns = min(3, len(series))
    found = []
    for index, (run, buckets) in enumerate(series):

        def draw(name: str, width: float, run: Run = run, buckets: Buckets = buckets) -> str:
            return panel(
                name,
                run.policy,
                buckets,
                colour=colours[run.policy],
                capacity=float(run.gpus or most_used),
                longest_queue=queue,
                until_s=until_s,
                last_arrival_s=records.trace.span_s,
                calendar=records.calendar,
                width=width,
            )

        found.append(figure(run.policy, "", f"time-{index}", draw, WIDE / columns - 16 * (columns > 1)))
    rows = [
        [
            Cell(run.policy),
            Cell(text.count(fmean(buckets.used_gpus))),
            Cell(text.count(fmean(buckets.pending_jobs))),
            Cell(text.count(max(buckets.pending_jobs))),
            Cell(text.count(max(buckets.pending_gpus))),
            Cell(text.duration(buckets.width_s)),
        ]
        for run, buckets in series
    ]
    headings = [
        "policy",
        "mean GPUs in use",
        "mean jobs waiting",
        "most jobs waiting",
        "most GPUs asked by waiting jobs",
        "averaged over",
    ]
    table = Table("Use and queue over time", [(heading, "") for heading in headings], rows)
    last, date = text.duration(records.trace.span_s), records.calendar.at(records.trace.span_s)
    last_arrival = f"{last} after the first ({date})" if date else f"{last} after the first"
    return Timeline(found, columns, last_arrival, records.calendar.about, table)


@dataclass(frozen=True)
class LaneSection:
    """The lane picture as first shown, and what the script needs for the others."""

    figure: Figure
    payload: str
    policies: list[str]
    hour: int
    hours: int
    pages: list[str]
    hour_name: str
    tenants: list[tuple[str, str]]
    sizes: list[tuple[str, str]]
    by_tenant: bool
    shortened: bool


def lane_section(records: Records, comparison: Comparison) -> LaneSection | None:
    """Jobs on nodes; None where jobs were not placed on nodes."""
    recorded = {
        run.policy: series.lanes
        for run in comparison.runs
        if (series := records.series.get(run.key)) is not None
        and series.lanes is not None
        and series.lanes.nodes
    }
    if not recorded:
        return None
    pictures = lanes.pictures(recorded)
    palette = lanes.palette_of(pictures)
    picture = pictures[0]
    hour = lanes.busiest_hour(picture.lanes, picture.bars)
    by_tenant = len(palette.tenants) > 1
    name = lanes.hour_name(picture.lanes.from_s + hour * lanes.HOUR_S, records.calendar)

    def draw(unique: str, width: float) -> str:
        return lane_drawing.draw(unique, picture, hour, name, palette, by_tenant, width)

    headings = [("node", ""), ("GPU time in use", ""), ("jobs", "")]
    rows = [[Cell(cell) for cell in row] for row in lanes.occupancy(picture, hour)]
    table = Table(f"Nodes under {picture.policy}, {name}", headings, rows)
    tenants = [(f"t{code}", tenant or "(no name)") for code, tenant in enumerate(palette.tenants)]
    if any(bar.segment.tenant not in palette.tenants for item in pictures for bar in item.bars):
        tenants.append((f"t{lanes.TENANT_COLOURS}", "others"))
    classes = sorted({sizes.size_class(bar.segment.num_gpus) for item in pictures for bar in item.bars})
    total, page = len(picture.lanes.nodes), lanes.NODES_PER_PAGE
    return LaneSection(
        figure=figure("Jobs on nodes", "", "lanes", draw, table=table),
        payload=lane_data.payload(pictures, palette, hour, records.calendar),
        policies=[item.policy for item in pictures],
        hour=hour,
        hours=lanes.hours_of(picture.lanes),
        pages=[f"{first + 1} to {min(total, first + page)}" for first in range(0, total, page)],
        hour_name=name,
        tenants=tenants,
        sizes=[(f"z{code}", sizes.SIZES[code][1]) for code in classes],
        by_tenant=by_tenant,
        shortened=any(item.lanes is not recorded[item.policy] for item in pictures),
    )
