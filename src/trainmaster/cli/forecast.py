"""`trainmaster forecast`: when the waiting jobs of a saved state will start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.support import emit_json, output, path, progress_bar, say
from trainmaster.model.errors import InputError, nearest

if TYPE_CHECKING:
    from trainmaster.forecast import Forecast, JobForecast, Spread

EXAMPLE = "Example: trainmaster forecast out/week/state-200000.jsonl --submit 8 --jobs 2"

SHOWN = 40
"""Waiting jobs that the table shows; --json has all of them."""


def forecast(
    state: Annotated[
        Path, typer.Argument(parser=path, metavar="STATE", help="A file of simulate --snapshot-at.")
    ],
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="Show this job; without one, all that wait.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Runs forward, each with other run times and arrivals.")] = 32,
    submit: Annotated[
        float | None, typer.Option(metavar="GPUS", help="Also: how long would a new job of this size wait?")
    ] = None,
    horizon: Annotated[float, typer.Option(help="Seconds that a run looks ahead at most.")] = 604_800.0,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    jobs: Annotated[int, typer.Option(help="Runs at the same time, each in a process.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """When will my job start? The state run forward many times under its own policy."""
    from trainmaster.forecast import forecast as run
    from trainmaster.sim.snapshot import read_snapshot

    snapshot = read_snapshot(state)
    if job is not None:
        waiting = [entry["job"]["id"] for entry in snapshot.pending()]
        if job not in waiting:
            raise InputError(f"no job {job!r} waits in this state", file=state, mend=nearest(job, waiting))

    def first(found: Forecast) -> None:
        if not json and draws > 1 and output().isatty():
            say(_first_answer(found, job))
            output().flush()

    with progress_bar("forecasting") as update:
        found = run(
            snapshot,
            draws=draws,
            jobs=jobs,
            seed=seed,
            horizon_s=horizon,
            only=job,
            submit=submit,
            first=first,
            progress=update,
        )
    if json:
        emit_json(found.as_dict())
        return
    _show(found, job)


def _first_answer(found: Forecast, job: str | None) -> str:
    """What one run says, while the others are still under way."""
    from trainmaster.report.text import duration

    starts = [each.start.p50 for each in found.jobs if each.start.p50 is not None]
    if not starts:
        return "first run: none of them starts"
    if job is not None:
        return f"first run: {job} starts in {duration(starts[0])}"
    middle = duration(starts[len(starts) // 2])
    return f"first run: half of the waiting jobs start within {middle}, the last in {duration(max(starts))}"


def _show(found: Forecast, job: str | None) -> None:
    from trainmaster.report.text import plural

    at = f"at {found.now_s:,.12g} s under {found.policy}"
    if not found.jobs:
        say(f"Nobody waits {at}.")
    else:
        runs = plural(found.draws, "run")
        later = "" if found.arrivals else ", without later arrivals (the state knows no past)"
        say(f"{plural(len(found.jobs), 'job')} waiting {at}; {runs} forward{later}.\n")
        _table(found.jobs[:SHOWN], found.horizon_s)
        if len(found.jobs) > SHOWN:
            say(f"… and {plural(len(found.jobs) - SHOWN, 'job')} that start later (--json has all)")
        if job is not None:
            say(f"\n{job} {found.jobs[0].reason}.")
    if found.queues:
        _show_queues(found)


def _table(jobs: list[JobForecast], horizon_s: float) -> None:
    from trainmaster.report.text import duration, gpus, whole_percent

    rows = [
        ("job", "queue", "GPUs", "waited", "starts in", "80 % of runs: between", "ends in", "runs", "why")
    ]
    for each in jobs:
        rows.append(
            (
                each.job,
                each.queue or "–",
                gpus(each.gpus),
                duration(each.waited_s),
                _time(each.start.p50, horizon_s),
                _between(each.start, horizon_s),
                _time(each.end.p50, horizon_s),
                whole_percent(each.share),
                each.level,
            )
        )
    _print(rows, left=(0, 1, 8))


def _show_queues(found: Forecast) -> None:
    from trainmaster.report.text import gpus, plural, whole_percent

    size = (
        plural(found.queues[0].gpus, "GPU")
        if found.queues[0].gpus >= 1
        else f"{gpus(found.queues[0].gpus)} GPU"
    )
    say(f"\nA new job of {size} would wait:\n")
    rows = [("queue", "wait", "80 % of runs: between", "runs")]
    for each in found.queues:
        horizon = found.horizon_s
        rows.append(
            (
                each.queue or "–",
                _time(each.wait.p50, horizon),
                _between(each.wait, horizon),
                whole_percent(each.share),
            )
        )
    _print(rows, left=(0,))


def _print(rows: Sequence[Sequence[str]], left: tuple[int, ...]) -> None:
    """Columns as wide as they must be."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = (
            f"{text:<{width}}" if column in left else f"{text:>{width}}"
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join(cells))
        if number == 0:
            say("─" * (sum(widths) + 2 * len(widths) - 2))


def _time(seconds: float | None, horizon_s: float) -> str:
    from trainmaster.report.text import duration

    return f"> {duration(horizon_s)}" if seconds is None else duration(seconds)


def _between(spread: Spread, horizon_s: float) -> str:
    return f"{_time(spread.p10, horizon_s)} … {_time(spread.p90, horizon_s)}"
