"""`trainmaster usage`: who used how many GPU-hours, for chargeback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trainmaster.cli.support import emit_json, instant, output, path, say, span
from trainmaster.model.errors import InputError

EXAMPLE = "Example: trainmaster usage out/week --by tenant --policy srtf --csv"


def usage(
    folder: Annotated[
        Path, typer.Argument(parser=path, metavar="DIR", help="A result folder of simulate --out DIR.")
    ],
    by: Annotated[str, typer.Option(help="tenant | user")] = "tenant",
    policy: Annotated[str | None, typer.Option(help="Which run; needed if there are several.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Which capacity of a sweep.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which seed of a sweep.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="T",
            help="Only GPU-time from this instant on: seconds of the clock, or a date; --events only.",
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="T", help="Only GPU-time before this instant.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV on stdout.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """GPU-hours held by tenant or by user, start-up and checkpoints included."""
    from trainmaster.report.usage import calendar_and_span, gpu_hours
    from trainmaster.sim.result_folder import refuse_cut_off

    if by not in ("tenant", "user"):
        raise InputError(f"--by {by}: unknown", mend="tenant or user")
    if csv and json:
        raise InputError("--csv and --json exclude each other")
    calendar, first, last = calendar_and_span(folder, policy=policy, nodes=nodes, seed=seed)
    start_s, end_s = span(start, end, calendar)
    refuse_cut_off(folder, events=start is not None or end is not None)
    rows = gpu_hours(folder, by, policy=policy, nodes=nodes, seed=seed, start_s=start_s, end_s=end_s)
    if json:
        emit_json([{by: name, "jobs": jobs, "gpu_hours": hours} for name, jobs, hours in rows])
    elif csv:
        import csv as writing

        writer = writing.writer(output(), lineterminator="\n")
        writer.writerow([by, "jobs", "gpu_hours"])
        writer.writerows(rows)
        output().flush()
    else:
        width = max([len(by), *(len(name) for name, _, _ in rows)])
        total = sum(hours for _, _, hours in rows) or 1.0
        say(f"{by:<{width}}  {'jobs':>8}  {'GPU-hours':>12}  share")
        for name, jobs, hours in rows:
            say(f"{name or '-':<{width}}  {jobs:>8,}  {hours:>12,.1f}  {hours / total:>5.1%}")
    if not rows:
        covered = f"the run goes from {instant(first, calendar)} to {instant(last, calendar)}"
        within = "" if start is None and end is None else f" in this span of time; {covered}"
        print(f"nobody held a GPU{within}", file=sys.stderr)
