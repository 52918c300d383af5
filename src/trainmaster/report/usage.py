"""GPU-hours by tenant or user, from the files of a result folder."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmaster.model.calendar import Calendar, recorded_calendar
from trainmaster.model.errors import InputError
from trainmaster.model.units import to_ns

MEND = "make the folder with `trainmaster simulate TRACE ... --out DIR`"

Row = tuple[str, int, float]
"""(name, jobs, GPU-hours)."""


def gpu_hours(
    folder: str | Path,
    by: str,
    *,
    policy: str | None = None,
    nodes: int | None = None,
    seed: int | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
) -> list[Row]:
    """GPU-hours held, most first, then by name.

    Args:
        folder: of `simulate --out`.
        by: tenant or user.
        policy, nodes, seed: which run; may be left out when it is clear.
        start_s, end_s: count only GPU-time within [start_s, end_s); needs events.jsonl.

    Raises:
        InputError: files are missing or faulty, or the run isn't clear.
    """
    folder = Path(folder)
    number, run = _chosen(_summary(folder)["runs"], policy, nodes, seed, folder)
    wanted = {"policy": run["policy"], "nodes": str(run["cluster"]["nodes"]), "seed": str(run["seed"])}
    owners: dict[str, str] = {}
    held: dict[str, float] = {}
    for row in _jobs(folder):
        if all(row[key] == value for key, value in wanted.items()):
            owners[row["job_id"]] = row[by]
            held[row["job_id"]] = float(row["held_s"]) * float(row["num_gpus"])
    if start_s is not None or end_s is not None:
        bounds = (start_s or 0.0, float("inf") if end_s is None else end_s)
        held = _held_within(folder, number, *bounds)
    jobs: dict[str, int] = {}
    hours: dict[str, float] = {}
    for job, gpu_s in held.items():
        if gpu_s > 0:
            jobs[owners[job]] = jobs.get(owners[job], 0) + 1
            hours[owners[job]] = hours.get(owners[job], 0.0) + gpu_s / 3600
    return sorted(((name, jobs[name], hours[name]) for name in hours), key=lambda row: (-row[2], row[0]))


def calendar_and_span(
    folder: str | Path, *, policy: str | None = None, nodes: int | None = None, seed: int | None = None
) -> tuple[Calendar | None, int, int]:
    """The dates of a result's clock, and the instants (ns) of a run's first submission and last end.

    Args:
        folder, policy, nodes, seed: see `gpu_hours`.

    Raises:
        InputError: files are missing or faulty, or the run isn't clear.
    """
    folder = Path(folder)
    summary = _summary(folder)
    trace = summary["trace"]
    _, run = _chosen(summary["runs"], policy, nodes, seed, folder)
    start = to_ns(trace.get("start_s", 0))
    return recorded_calendar(trace), start, start + to_ns(run["makespan_s"] or 0)


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        recorded_calendar(summary["trace"])
        for run in summary["runs"]:
            run["policy"], run["cluster"]["nodes"], run["seed"], run["makespan_s"]
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path, mend=MEND) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is not a summary ({error})", file=path, mend=MEND) from None
    return summary


def _chosen(
    runs: list[dict[str, Any]], policy: str | None, nodes: int | None, seed: int | None, folder: Path
) -> tuple[int, dict[str, Any]]:
    found = [
        (number, run)
        for number, run in enumerate(runs)
        if policy in (None, run["policy"])
        and nodes in (None, run["cluster"]["nodes"])
        and seed in (None, run["seed"])
    ]
    if len(found) != 1:
        what = "no run matches" if not found else f"{len(found)} runs match"
        choices = _choices([run for _, run in found] or runs)
        raise InputError(what, file=folder, mend=f"choose with {' or '.join(choices)}")
    return found[0]


def _choices(runs: list[dict[str, Any]]) -> list[str]:
    """The options that name each run, without those that are the same for all."""
    columns = {
        "--policy": [shlex.quote(run["policy"]) for run in runs],
        "--nodes": [str(run["cluster"]["nodes"]) for run in runs],
        "--seed": [str(run["seed"]) for run in runs],
    }
    told = {option: values for option, values in columns.items() if len(set(values)) > 1}
    told = told or {"--policy": columns["--policy"]}
    return [
        " ".join(f"{option} {value}" for option, value in zip(told, values, strict=True))
        for values in zip(*told.values(), strict=True)
    ]


def _jobs(folder: Path) -> Iterator[dict[str, str]]:
    path = folder / "jobs.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            needed = {"policy", "nodes", "seed", "job_id", "tenant", "user", "num_gpus", "held_s"}
            missing = sorted(needed - set(reader.fieldnames or ()))
            if missing:
                raise InputError("missing column", file=path, row=1, column=missing[0], mend=MEND)
            yield from reader
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path, mend=MEND) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a CSV text file: {error}", file=path, mend=MEND) from None


def _held_within(folder: Path, run: int, start_s: float, end_s: float) -> dict[str, float]:
    """GPU-seconds held within the bounds, by job."""
    path = folder / "events.jsonl"
    gpus: dict[str, float] = {}
    since: dict[str, float] = {}
    held: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    entry = json.loads(line)
                    if entry["run"] == run:
                        _account(entry, gpus, since, held, start_s, end_s)
                except (ValueError, KeyError, TypeError):
                    raise InputError("is not an event", file=path, row=number, mend=MEND) from None
    except OSError as error:
        mend = "make the folder with --events to ask for a span of time"
        raise InputError(f"can't be read: {error.strerror}", file=path, mend=mend) from None
    return held


def _account(
    entry: dict[str, Any],
    gpus: dict[str, float],
    since: dict[str, float],
    held: dict[str, float],
    start_s: float,
    end_s: float,
) -> None:
    at = entry["t_ns"] / 1e9
    job = str(entry.get("job"))
    if entry.get("event") == "submitted":
        gpus[job] = entry["gpus"]
    elif entry.get("action") == "start":
        since[job] = at
    elif entry.get("event") in ("finished", "failed", "stopped", "lost") and job in since:
        begun = since.pop(job)
        span = min(at, end_s) - max(begun, start_s)
        if span > 0:
            held[job] = held.get(job, 0.0) + span * gpus[job]
