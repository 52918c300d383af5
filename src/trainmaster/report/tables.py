"""The comparison of policies as a terminal table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from . import text
from .measures import BY_FIGURE, judge
from .records import Run, as_run

if TYPE_CHECKING:
    from rich.console import Group

COLUMNS = (
    "mean_jct_s",
    "median_jct_s",
    "p99_jct_s",
    "mean_wait_s",
    "preemptions",
    "utilization",
    "makespan_s",
    "miss_rate",
    "fairness_loss",
)
"""What the terminal shows; where a measure applies to no run and is not a core one, it is left out."""
EXPENDABLE = ("makespan_s", "median_jct_s", "utilization", "mean_wait_s")
"""What a narrow terminal goes without, first to last."""

BROKEN_HEADINGS = {"preemptions": "preemp-\ntions", "utilization": "utili-\nzation"}
SYMBOLS = {"best": "●", "worst": "○", "": " "}
ASCII_SYMBOLS = {"best": "*", "worst": "!", "": " "}
STYLES = {"best": "bold green", "worst": "red", "": ""}


def comparison_table(
    runs: Sequence[Run | Mapping[str, Any]], *, width: int = 80, ascii_only: bool = False
) -> Group:
    """Runs side by side, best and worst of each column marked by symbol and by colour.

    Args:
        runs: runs, or the entries of `summary.json["runs"]`.
        width: columns of the terminal; a narrow one goes without the less important
            measures, and the line below the table says so.
        ascii_only: use marks and rules that any terminal can print.

    Returns:
        what `rich.console.Console.print` prints.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    known = [as_run(run) for run in runs]
    symbols = ASCII_SYMBOLS if ascii_only else SYMBOLS
    columns, left_out = _fit(_columns(known, symbols), width)
    rules = box.Box(str(box.SIMPLE_HEAD).replace("─", "-" if ascii_only else "─"), ascii=ascii_only)
    table = Table(box=rules, padding=0, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column.heading, justify=column.justify, vertical="bottom", no_wrap=True)
    for index, run in enumerate(known):
        cells = [Text(column.cells[index], style=column.styles[index]) for column in columns]
        last_of_cluster = index + 1 < len(known) and _cluster(known[index + 1]) != _cluster(run)
        table.add_row(*cells, end_section=last_of_cluster)
    notes = []
    if any(style for column in columns for style in column.styles):
        notes.append(f"{symbols['best']} best of its column  {symbols['worst']} worst")
    if left_out:
        notes.append(f"Left out at this width: {text.listing([item.heading for item in left_out])}.")
    return Group(table, *map(Text, notes))


def comparison_text(
    runs: Sequence[Run | Mapping[str, Any]], *, width: int = 80, ascii_only: bool = False
) -> str:
    """`comparison_table` as text without colour, no line longer than `width`.

    >>> runs = [{"policy": "fifo", "mean_jct_s": 7200}, {"policy": "srtf", "mean_jct_s": 60}]
    >>> print("\\n".join(line[:12].rstrip() for line in comparison_text(runs).splitlines()))
           mean
    policy  JCT
    ────────────
    fifo   ○2 h
    srtf   ●1 m
    ● best of it
    """
    import io

    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    console.print(comparison_table(runs, width=width, ascii_only=ascii_only))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


@dataclass(frozen=True)
class Column:
    """A column ready to print; `styles` are rich styles, one a cell."""

    heading: str
    cells: list[str]
    styles: list[str]
    justify: Literal["left", "right"] = "right"
    figure: str = ""

    @property
    def width(self) -> int:
        return max(len(line) for cell in [self.heading, *self.cells] for line in cell.split("\n"))


def _columns(runs: Sequence[Run], symbols: Mapping[str, str]) -> list[Column]:
    plain = [""] * len(runs)
    columns = [Column("policy", [run.policy for run in runs], plain, "left")]
    for heading, values in (("nodes", [run.nodes for run in runs]), ("seed", [run.seed for run in runs])):
        if len(set(values)) > 1:
            columns.append(Column(heading, [str(value) for value in values], plain))
    for measure in (BY_FIGURE[figure] for figure in COLUMNS):
        if measure.core or any(run[measure.figure] is not None for run in runs):
            marks = judge(measure, runs)
            cells = [symbols[mark] + measure.cell(run) for mark, run in zip(marks, runs, strict=True)]
            heading = BROKEN_HEADINGS.get(measure.figure) or measure.name.replace(" ", "\n", 1)
            columns.append(Column(heading, cells, [STYLES[mark] for mark in marks], figure=measure.figure))
    return columns


def _fit(columns: list[Column], width: int) -> tuple[list[Column], list[Column]]:
    """The columns that fit, and those left out: long policy names are broken first."""
    if _total(columns) > width:
        names = [name.replace("(", "\n(", 1).replace(",", ",\n ") for name in columns[0].cells]
        columns = [replace(columns[0], cells=names), *columns[1:]]
    left_out = []
    for figure in EXPENDABLE:
        if _total(columns) > width:
            left_out += [column for column in columns if column.figure == figure]
            columns = [column for column in columns if column.figure != figure]
    return columns, [replace(column, heading=BY_FIGURE[column.figure].name) for column in left_out]


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width + 1 for column in columns) - 1


def _cluster(run: Run) -> tuple[int | None, int | None, int | None]:
    return run.nodes, run.gpus, run.seed
