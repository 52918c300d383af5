"""How `trainmaster trace info` looks: figures, and pictures made of characters.

Everything fits 80 columns, says the same without colour, and uses plain ASCII where the
terminal can't show more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trainmaster.model.calendar import recorded_calendar
from trainmaster.model.units import to_ns
from trainmaster.traces.problems import Problems
from trainmaster.traces.statistics import Bursts, Declared, RecordedWaits, Share, TraceStatistics

_BAR_WIDTH = 22
_MOST_SHARES = 8
"""More tenants than this are summed up in one line."""


class Glyphs:
    """The characters that pictures are made of."""

    def __init__(self, ascii_only: bool) -> None:
        self.levels = " .:#" if ascii_only else " ▁▂▃▄▅▆▇█"
        self.parts = " #" if ascii_only else " ▏▎▍▌▋▊▉█"
        self.corner, self.line, self.tick = ("+", "-", "+") if ascii_only else ("└", "─", "┴")
        self.side = "|" if ascii_only else "│"
        self.none = "-" if ascii_only else "–"

    def bar(self, share: float, width: int) -> str:
        """A horizontal bar; what is not nothing shows at least a trace."""
        steps = len(self.parts) - 1
        filled = round(share * width * steps)
        if share > 0:
            filled = max(1, filled)
        whole, rest = divmod(filled, steps)
        return self.parts[-1] * whole + (self.parts[rest] if rest else "")


class _Bar:
    """A bar that gives way to the figures beside it where a terminal is narrow."""

    def __init__(self, share: float, width: int, glyphs: Glyphs) -> None:
        self._share, self._width, self._glyphs = share, width, glyphs

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, min(self._width, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(self._width, options.max_width)
        yield Text(self._glyphs.bar(self._share, width).ljust(width), style="cyan", no_wrap=True)


def show_statistics(console: Console, statistics: TraceStatistics, problems: Problems) -> None:
    """Print all of it."""
    glyphs = Glyphs(console.options.ascii_only)
    console.print(_title(statistics))
    console.print(_figures(statistics, glyphs))
    if not statistics.jobs:
        _print_rows(console, problems)
        return
    hourly, width = statistics.jobs_per_hour, min(console.width, 100) - 4
    per_column = hours_per_column(len(hourly), width)
    caption = f"Jobs per hour (a column is {_some(per_column, 'hour')})"
    _section(console, caption, Text(per_hour(hourly, width, glyphs)))
    _section(console, "GPUs asked for", _sizes(statistics, glyphs))
    if statistics.duration.jobs:
        rows = [(part.label, part.jobs, part.share) for part in statistics.duration_ranges]
        _section(console, "Run time", _bars(rows, glyphs))
    if len(statistics.tenant_shares) > 1:
        _section(console, "Tenants", _shares(statistics.tenant_shares, glyphs))
    if statistics.statuses:
        _section(console, "How jobs ended", _shares(statistics.statuses, glyphs))
    _print_rows(console, problems)


def _section(console: Console, title: str, *parts: RenderableType) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(Padding(Group(*parts), (0, 0, 0, 2)))


def _title(statistics: TraceStatistics) -> Text:
    title = Text(statistics.name or statistics.path, style="bold")
    title.append(f"  {statistics.format}", style="dim")
    if statistics.synthetic:
        title.append("  SYNTHETIC: generated, not recorded", style="bold yellow")
    return title


def _figures(statistics: TraceStatistics, glyphs: Glyphs) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    for label, value in _figure_rows(statistics, glyphs):
        table.add_row(label, Text(value))
    return Padding(table, (0, 0, 0, 2))


def _figure_rows(statistics: TraceStatistics, glyphs: Glyphs) -> Iterable[tuple[str, str]]:
    duration = statistics.duration
    yield "jobs", f"{statistics.jobs:,}{_rows_lost(statistics)}"
    yield "span", f"{statistics.span_s / 86400:,.1f} days{_dates(statistics)}"
    if statistics.gpu_hours is not None:
        yield "demand", _demand(statistics.gpu_hours, statistics.mean_demand_gpus)
    yield "people", f"{_some(statistics.tenants, 'tenant')}, {_some(statistics.users, 'user')}"
    if duration.jobs:
        yield (
            "run time",
            f"median {_seconds(duration.median_s, glyphs)}, mean {_seconds(duration.mean_s, glyphs)}, "
            f"p99 {_seconds(duration.p99_s, glyphs)}",
        )
        yield "longest", _seconds(duration.max_s, glyphs)
    if duration.jobs < statistics.jobs:
        unknown = f"not known for {_some(statistics.jobs - duration.jobs, 'job')} (a speed profile gives it)"
        yield ("" if duration.jobs else "run time"), unknown
    if statistics.recorded_wait is not None:
        yield "recorded wait", _recorded_wait(statistics.recorded_wait, glyphs)
    if statistics.hourly_mean is not None and statistics.hourly_dispersion is not None:
        yield (
            "arrivals",
            f"{statistics.hourly_mean:,.1f} jobs per hour, variance/mean {statistics.hourly_dispersion:,.0f}",
        )
    yield "bursts", _bursts(statistics.bursts)
    if statistics.declared.share:
        yield "declared time", _declared(statistics.declared)
    if statistics.deadline_share:
        yield "deadlines", f"{_percent(statistics.deadline_share)} of the jobs"


def _rows_lost(statistics: TraceStatistics) -> str:
    lost = sum(statistics.dropped.values())
    return f" ({lost:,} dropped, see below)" if lost else ""


def _dates(statistics: TraceStatistics) -> str:
    """When the first job came, and what that is on the clock that --from and --to count on."""
    calendar = recorded_calendar(statistics.as_dict())
    if calendar is None or not statistics.jobs:
        return ""
    start = calendar.text(to_ns(statistics.start_s))
    return f" from {start} (second {statistics.start_s:.12g})" if start else ""


def _demand(gpu_hours: float, mean: float | None) -> str:
    return f"{gpu_hours:,.0f} GPU-hours" + (f", {mean:,.0f} GPUs on average" if mean else "")


def _some(count: int, noun: str) -> str:
    return f"{f'{count:,}' if count else 'no'} {noun}{'' if count == 1 else 's'}{'' if count else ' named'}"


def _bursts(bursts: Bursts) -> str:
    if bursts.mean is None:
        return "none"
    whose = {"user": "of one user", "tenant": "of one tenant", "trace": "of anybody"}[bursts.by]
    return (
        f"{_percent(bursts.share)} of the jobs, {bursts.mean:.1f} each, at most {bursts.largest:,}\n"
        f"(jobs {whose} that follow within 600 s)"
    )


def _declared(declared: Declared) -> str:
    text = f"by {_percent(declared.share)} of the jobs"
    if declared.median_ratio is None or declared.mean_accuracy is None or declared.exceeded is None:
        return text
    return (
        f"{text}, median {declared.median_ratio:.1f} x the real one,\n"
        f"used to {_percent(declared.mean_accuracy)} on average, exceeded by {_percent(declared.exceeded)}"
    )


def _recorded_wait(wait: RecordedWaits, glyphs: Glyphs) -> str:
    return (
        f"median {_seconds(wait.median_s, glyphs)}, mean {_seconds(wait.mean_s, glyphs)}, "
        f"of {_percent(wait.share)} of the jobs"
    )


def _sizes(statistics: TraceStatistics, glyphs: Glyphs) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for header in ("GPUs", "jobs", "", "GPU-hours", "median", "mean", "p99"):
        table.add_column(header, justify="left" if header == "" else "right", no_wrap=header != "")
    for size in statistics.sizes:
        table.add_row(
            size.gpus,
            _percent(size.share),
            _Bar(size.share, _BAR_WIDTH // 2, glyphs),
            _percent(size.gpu_hours_share, glyphs.none),
            _seconds(size.duration.median_s, glyphs),
            _seconds(size.duration.mean_s, glyphs),
            _seconds(size.duration.p99_s, glyphs),
        )
    return table


def _bars(rows: Iterable[tuple[str, int, float]], glyphs: Glyphs) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, min_width=8)
    table.add_column()
    table.add_column(justify="right", no_wrap=True, style="dim")
    for label, count, share in rows:
        table.add_row(Text(label), _percent(share), _Bar(share, 2 * _BAR_WIDTH, glyphs), f"{count:,}")
    return table


def _shares(shares: Sequence[Share], glyphs: Glyphs) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for header in ("", "jobs", " ", "GPU-hours"):
        table.add_column(header, justify="right" if header.strip() else "left", no_wrap=header != " ")
    shown = list(shares[:_MOST_SHARES])
    rest = shares[_MOST_SHARES:]
    if rest:
        known = [each.gpu_hours_share for each in rest if each.gpu_hours_share is not None]
        share, jobs = sum(each.share for each in rest), sum(each.jobs for each in rest)
        shown.append(Share(f"{len(rest)} more", jobs, share, sum(known) if known else None))
    for each in shown:
        bar = _Bar(each.share, _BAR_WIDTH, glyphs)
        name = each.name if len(each.name) <= 30 else f"{each.name[:29]}~"
        table.add_row(
            Text(name or "(none)"), _percent(each.share), bar, _percent(each.gpu_hours_share, glyphs.none)
        )
    return table


def hours_per_column(hours: int, width: int) -> int:
    """As many hours a column as it takes to fit `width` characters, axis included."""
    return -(-hours // max(1, width - 8))


def per_hour(counts: Sequence[int], width: int, glyphs: Glyphs, height: int = 4) -> str:
    """Columns of the mean number of jobs an hour, with axes; as many hours a column as fit.

    >>> print(per_hour([0, 3, 1, 2], 20, Glyphs(ascii_only=True), height=1))
    3 | #.:
    0 ++---
       day 0
    """
    per_column = hours_per_column(len(counts), width)
    columns = [
        sum(part) / len(part)
        for part in (counts[at : at + per_column] for at in range(0, len(counts), per_column))
    ]
    top = max(columns)
    steps = len(glyphs.levels) - 1
    filled = [_at_least_one(value, value / top * height * steps) if top else 0 for value in columns]
    label = f"{top:,.0f}"
    lines = []
    for row in reversed(range(height)):
        cells = "".join(glyphs.levels[min(max(fill - row * steps, 0), steps)] for fill in filled)
        lines.append(f"{label if row == height - 1 else '':>{len(label)}} {glyphs.side}{cells}".rstrip())
    ticks, names = _day_axis(len(counts), per_column, len(columns), glyphs)
    lines.append(f"{'0':>{len(label)}} {glyphs.corner}{ticks}")
    lines.append(f"{'':>{len(label)}}  {names}")
    return "\n".join(lines)


def _at_least_one(value: float, fill: float) -> int:
    return max(1, round(fill)) if value else 0


def _day_axis(hours: int, per_column: int, columns: int, glyphs: Glyphs) -> tuple[str, str]:
    """The ticks, and below them the names of as many days as have room."""
    days = next(step for step in _DAY_STEPS if hours / 24 / step <= columns / 10 or step == _DAY_STEPS[-1])
    marks = [(day * 24 // per_column, f"day {day}") for day in range(0, -(-hours // 24), days)]
    ticks = [glyphs.line] * columns
    names = ""
    for at, name in marks:
        if at < columns and (not names or at > len(names)):
            ticks[at] = glyphs.tick
            names = names.ljust(at) + name
    return "".join(ticks), names


_DAY_STEPS = (1, 2, 7, 14, 28, 56, 91, 182, 365, 3650, 36500)


def _print_rows(console: Console, problems: Problems) -> None:
    lines = problems.lines()
    if not lines:
        return
    console.print()
    console.print(Text("Rows at fault or noted", style="bold"))
    for line in lines:
        console.print(Padding(Text(line, style="yellow"), (0, 0, 0, 2)))


def _percent(share: float | None, unknown: str = "") -> str:
    return unknown if share is None else f"{100 * share:.1f} %"


def _seconds(seconds: float | None, glyphs: Glyphs) -> str:
    return glyphs.none if seconds is None else f"{seconds:,.0f} s"
