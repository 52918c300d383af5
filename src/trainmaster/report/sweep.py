"""Several capacities or seeds: how many nodes are enough, and how sure the figures are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from . import charts, text
from .parts import HALF, Cell, Figure, Table, figure, time_cell
from .records import Records, Run
from .story import Comparison

FIGURES = (("mean_jct_s", "mean JCT"), ("p99_jct_s", "p99 JCT"))


@dataclass(frozen=True)
class Sweep:
    """Several capacities or seeds compared; `figures` is empty where only seeds differ."""

    title: str
    answer: str
    shown_above: str
    figures: list[Figure]
    table: Table


def sweep(records: Records, comparison: Comparison, colours: Mapping[str, str]) -> Sweep | None:
    """Mean and p99 JCT by capacity, averaged over seeds; None where all runs share cluster and seed."""
    runs = [run for run in records.runs if capacity(run) is not None]
    capacities = {capacity(run) for run in runs}
    seeds = {run.seed for run in runs}
    if len(capacities) < 2 and len(seeds) < 2:
        return None
    unit = "nodes" if all(run.nodes is not None for run in runs) else "GPUs"
    trends = {figure_name: trends_of(runs, figure_name) for figure_name, _ in FIGURES}
    figures = []
    if len(capacities) > 1:
        for figure_name, title in FIGURES:
            if trends[figure_name]:
                figures.append(_figure(figure_name, title, unit, trends[figure_name], comparison, colours))
    first = comparison.winner
    seed = "" if first.seed is None or len(seeds) < 2 else f", seed {first.seed}"
    return Sweep(
        title=f"How many {unit} are enough" if figures else "How much depends on chance",
        answer=answer(trends["mean_jct_s"], comparison, unit) if figures else "",
        shown_above=f"{text.count(capacity(first) or 0)} {unit}{seed}",
        figures=figures,
        table=_table(runs, trends, unit),
    )


def capacity(run: Run) -> int | None:
    return run.gpus if run.nodes is None else run.nodes


def trends_of(runs: Sequence[Run], figure_name: str) -> list[charts.Trend]:
    """For each policy, in the order of the runs: average, lowest and highest value at each capacity."""
    found: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        value, size = run[figure_name], capacity(run)
        if value is not None and size is not None:
            found.setdefault(run.policy, {}).setdefault(size, []).append(value)
    return [
        charts.Trend(
            policy,
            [
                (float(size), fmean(values), min(values), max(values))
                for size, values in sorted(by_size.items())
            ],
        )
        for policy, by_size in found.items()
    ]


def answer(trends: Sequence[charts.Trend], comparison: Comparison, unit: str) -> str:
    """What a better policy is worth in nodes.

    >>> from trainmaster.report.records import as_run
    >>> runs = as_run({"policy": "srtf"}), as_run({"policy": "fifo"})
    >>> fifo = charts.Trend("fifo", [(8, 90, 90, 90), (16, 40, 40, 40)])
    >>> answer([charts.Trend("srtf", [(8, 50, 50, 50)]), fifo], Comparison(runs, runs[1]), "nodes")
    'fifo needs 16 nodes to finish the average job as soon as srtf does on 8 (40 s against 50 s).'
    """
    points = {trend.policy: trend.points for trend in trends}
    mine, other = points.get(comparison.winner.policy), points.get(comparison.baseline.policy)
    if not mine:
        return ""
    winner, baseline = comparison.winner.policy, comparison.baseline.policy
    (size, best, *_), (largest, last, *_) = mine[0], mine[-1]
    smallest = f"{winner} does on {text.count(size)}"
    if other and winner != baseline and best < other[0][1]:
        enough = next((point for point in other if point[1] <= best), None)
        if enough is None:
            does = (
                f"Even on {text.count(other[-1][0])} {unit}, {baseline} finishes the average job later than"
            )
            return f"{does} {smallest} ({text.duration(other[-1][1])} against {text.duration(best)})."
        does = f"{baseline} needs {text.count(enough[0])} {unit} to finish the average job as soon as"
        return f"{does} {smallest} ({text.duration(enough[1])} against {text.duration(best)})."
    span = f"From {text.count(size)} to {text.count(largest)} {unit}, the mean JCT under {winner} goes"
    return f"{span} from {text.duration(best)} to {text.duration(last)}."


def _figure(
    figure_name: str,
    title: str,
    unit: str,
    trends: Sequence[charts.Trend],
    comparison: Comparison,
    colours: Mapping[str, str],
) -> Figure:
    strong = {comparison.winner.policy, comparison.baseline.policy}
    ranges = any(high > low for trend in trends for _, _, low, high in trend.points)
    subtitle = f"by number of {unit}" + (
        "; average over seeds, bars from lowest to highest" if ranges else ""
    )

    def draw(name: str, width: float) -> str:
        return charts.trends(name, f"{title} {subtitle}", trends, title, unit, colours, strong, width)

    return figure(title.replace("mean", "Mean"), subtitle, f"sweep-{figure_name}", draw, HALF)


def _table(runs: Sequence[Run], trends: Mapping[str, Sequence[charts.Trend]], unit: str) -> Table:
    headings = [("policy", ""), (unit, ""), ("runs", "")]
    headings += [(f"{title}{kind}", "") for _, title in FIGURES for kind in ("", ", lowest", ", highest")]
    points = {
        name: {(trend.policy, point[0]): point[1:] for trend in found for point in trend.points}
        for name, found in trends.items()
    }
    groups: dict[tuple[str, float], int] = {}
    for run in runs:
        key = run.policy, float(capacity(run) or 0)
        groups[key] = groups.get(key, 0) + 1
    rows = []
    for (policy, size), amount in sorted(groups.items(), key=lambda item: item[0][1]):
        row = [Cell(policy, policy), Cell(text.count(size), size), Cell(str(amount), amount)]
        for name, _ in FIGURES:
            values = points[name].get((policy, size), (None, None, None))
            row += [time_cell(value, "no job finished") for value in values]
        rows.append(row)
    return Table("Mean and p99 JCT over all runs", headings, rows)
