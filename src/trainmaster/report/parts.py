"""What the page is made of: plain data that the template prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import text
from .measures import Measure, judge
from .records import RecordedWaits, Run
from .story import Comparison

WIDE, HALF, NARROW = 1000.0, 490.0, 350.0
"""Widths in which charts are drawn: across the page, half of it, and on a phone."""
COLOURS = 12
Draw = Callable[[str, float], str]


@dataclass(frozen=True)
class Cell:
    """A table cell: what it shows, what it sorts by, its mark ("best", "worst", ""), why it is empty."""

    shown: str
    value: float | str | None = None
    mark: str = ""
    why: str = ""


@dataclass(frozen=True)
class Table:
    """Headings with their explanations ("" = none), and rows whose first cell names the row."""

    caption: str
    headings: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Figure:
    """A chart in two widths (SVG text), and the same as a table."""

    title: str
    subtitle: str
    wide: str
    narrow: str
    table: Table | None = None


@dataclass(frozen=True)
class BarRow:
    """A bar of one or two parts, in percent of the longest bar of its chart."""

    name: str
    colour: str
    shown: str
    solid: float
    light: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class BarPanel:
    """Bars under a title."""

    title: str
    subtitle: str
    rows: Sequence[BarRow]


def side_by_side(panels: Sequence[BarPanel]) -> int:
    """Columns that leave no panel alone in its row."""
    return 2 if len(panels) in (2, 4) else min(3, len(panels))


def figure(
    title: str, subtitle: str, name: str, draw: Draw, wide: float = WIDE, table: Table | None = None
) -> Figure:
    """Draw a chart for a desk and for a phone; `draw` gets a unique name and a width."""
    return Figure(title, subtitle, draw(f"{name}-wide", wide), draw(f"{name}-narrow", NARROW), table)


def time_cell(seconds: float | None, why: str) -> Cell:
    """Seconds as a cell; None shows as missing."""
    return Cell(text.MISSING, None, why=why) if seconds is None else Cell(text.duration(seconds), seconds)


def colours_of(comparison: Comparison, runs: Sequence[Run]) -> dict[str, str]:
    """A colour class for each policy: the baseline is neutral, the winner has the first colour."""
    neutral = comparison.baseline.policy if comparison.winner is not comparison.baseline else None
    others = [run.policy for run in (*comparison.runs, *runs) if run.policy != neutral]
    colours = {policy: f"c{rank % COLOURS}" for rank, policy in enumerate(dict.fromkeys(others))}
    return colours if neutral is None else {**colours, neutral: "cb"}


def ranking(
    comparison: Comparison, colours: Mapping[str, str], recorded: RecordedWaits | None = None
) -> list[BarRow]:
    """Mean JCT of each policy: running (solid) and waiting (light); last the waits that the log records."""
    means = [run["mean_jct_s"] or 0.0 for run in comparison.runs]
    longest = max([*means, recorded.mean_wait_s if recorded else 0.0]) or 1.0
    rows = []
    for run in comparison.runs:
        jct, wait = run["mean_jct_s"], run["mean_wait_s"]
        colour = colours[run.policy]
        if jct is None:
            rows.append(BarRow(run.policy, colour, text.MISSING, 0, note="no job finished"))
            continue
        waits = min(jct, wait or 0.0)
        note = "" if wait is None else f"{text.duration(wait)} waiting"
        parts = 100 * (jct - waits) / longest, 100 * waits / longest
        rows.append(BarRow(run.policy, colour, text.duration(jct), *parts, note))
    if recorded:
        light = 100 * recorded.mean_wait_s / longest
        note = f"{text.duration(recorded.mean_wait_s)} waiting"
        rows.append(BarRow("the log itself", "cb", "", 0.0, light, note))
    return rows


def measure_bars(measure: Measure, comparison: Comparison, colours: Mapping[str, str]) -> BarPanel | None:
    """One measure of all policies as bars; None where no run has it."""
    having = [(run, value) for run in comparison.runs if (value := run[measure.figure]) is not None]
    if not having:
        return None
    longest = max(value for _, value in having) or 1.0
    rows = [
        BarRow(run.policy, colours[run.policy], measure.cell(run), 100 * value / longest)
        for run, value in having
    ]
    return BarPanel(measure.name, measure.meaning, rows)


def numbers(runs: Sequence[Run], measures: Sequence[Measure]) -> Table:
    """All figures of all runs; nodes and seed where they differ."""
    headings = [("policy", "")]
    keys: list[tuple[str, list[int | None]]] = [
        ("nodes", [run.nodes for run in runs]),
        ("seed", [run.seed for run in runs]),
    ]
    keys = [(name, values) for name, values in keys if len(set(values)) > 1]
    headings += [(name, "") for name, _ in keys]
    headings += [(measure.name, measure.meaning) for measure in measures]
    marks = {measure.figure: judge(measure, runs) for measure in measures}
    rows = []
    for index, run in enumerate(runs):
        row = [Cell(run.policy, run.policy)]
        row += [Cell(str(values[index]), values[index]) for _, values in keys]
        for measure in measures:
            value = run[measure.figure]
            why = measure.absent if value is None else ""
            row.append(Cell(measure.cell(run), value, marks[measure.figure][index], why))
        rows.append(row)
    return Table("All figures of all runs", headings, rows)
