"""`trainmaster why`: why jobs wait in a saved state, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.support import emit_json, path, say
from trainmaster.model.errors import PolicyError

if TYPE_CHECKING:
    from trainmaster.core.engine import Engine
    from trainmaster.model.reason import Level, Reason

EXAMPLE = "Example: trainmaster why out/week/state-200000.jsonl 4711"

SHOWN = 5
"""Reasons of one level that the table shows."""


def why(
    state: Annotated[
        Path, typer.Argument(parser=path, metavar="STATE", help="A file of simulate --snapshot-at.")
    ],
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A waiting job; without one, all of them.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Why a job waits and what would help; without JOB, why all of them do."""
    from trainmaster.sim.snapshot import read_snapshot

    saved = read_snapshot(state)
    engine = saved.restored({}, []).engine
    # Nothing has happened since the last event, but time has passed.
    engine.now = max(engine.now, saved.now)
    if job is not None:
        reason, untried = _one(engine, job)
        if json:
            emit_json({**_about(engine), **_entry(engine, job, reason), "untried": untried or None})
        else:
            _show_job(engine, job, reason, untried)
        return
    reasons = engine.explain_all()
    if json:
        jobs = [_entry(engine, name, reason) for name, reason in reasons.items()]
        emit_json({**_about(engine), "jobs": jobs})
    else:
        _show_all(engine, reasons)


def _one(engine: Engine, job: str) -> tuple[Reason, str]:
    """The reason with what would help, or without, and then why that could not be tried."""
    try:
        return engine.explain(job), ""
    except PolicyError as error:
        return engine.explain(job, hints=False), str(error)


def _about(engine: Engine) -> dict[str, Any]:
    from trainmaster.model.units import to_seconds

    return {"now_s": to_seconds(engine.now), "policy": engine.policy.name}


def _entry(engine: Engine, name: str, reason: Reason) -> dict[str, Any]:
    from trainmaster.model.units import to_gpus, to_seconds

    job = engine.state.jobs[name]
    return {
        "job": name,
        "tenant": job.job.tenant,
        "gpus": to_gpus(job.gpus),
        "pending_since_s": to_seconds(job.pending_since),
        **reason.as_dict(),
    }


# -- for people ------------------------------------------------------------------------------------


def _show_job(engine: Engine, name: str, reason: Reason, untried: str) -> None:
    from trainmaster.model.reason import MEANINGS
    from trainmaster.policies.parts.reason_words import gpus, span

    job = engine.state.jobs[name]
    whose = f" of {job.job.tenant}" if job.job.tenant else ""
    waited = span(engine.now - job.pending_since)
    _say_wrapped("", f"{name}{whose}, {gpus(job.gpus)}, has waited {waited}. It {reason.sentence}.")
    say(f"\nlevel  {reason.level}: {MEANINGS[reason.level]}")
    if reason.permanent:
        say("       It waits for ever unless the job, its queue or the cluster is changed.")
    if reason.hints:
        say("helps  " + "\n       ".join(f"It {hint.sentence}." for hint in reason.hints))
    elif untried:
        say(f"helps  could not be tried: {untried}")
    else:
        say("helps  Nothing known but time.")


def _show_all(engine: Engine, reasons: dict[str, Reason]) -> None:
    from trainmaster.model.reason import MEANINGS
    from trainmaster.model.units import to_gpus, to_seconds

    at = f"at {to_seconds(engine.now):,.12g} s"
    if not reasons:
        say(f"Nobody waits {at}.")
        return
    free, total = to_gpus(engine.state.capacity.free_milli), engine.state.cluster.gpus
    asked = to_gpus(sum(engine.state.jobs[name].gpus for name in reasons))
    verb = "job waits" if len(reasons) == 1 else "jobs wait"
    say(f"{len(reasons):,} {verb} for {asked:,} GPUs {at}; {free:,} of {total:,} GPUs are free.\n")
    say(f"{'jobs':>6} {'GPUs':>8} {'longest':>9}  why")
    for level, names in _by_level(reasons):
        say(f"{_figures(engine, names)}  {level}: {MEANINGS[level]}")
        groups = _by_sentence(reasons, names)
        for text, members in groups[:SHOWN]:
            _say_wrapped(f"{_figures(engine, members)}    ", f"{text} [{_named(members)}]")
        if groups[SHOWN:]:
            rest = [name for _, members in groups[SHOWN:] for name in members]
            more = "another reason" if len(groups) == SHOWN + 1 else f"{len(groups) - SHOWN:,} other reasons"
            say(f"{_figures(engine, rest)}    {more} of this kind")


def _say_wrapped(begin: str, text: str) -> None:
    """Text that goes on below itself, as wide as the terminal."""
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(60, get_terminal_size((120, 24)).columns)
    indent = " " * (len(begin) + 2 if begin else 0)
    say(fill(begin + text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def _figures(engine: Engine, names: Sequence[str]) -> str:
    from trainmaster.model.units import to_gpus
    from trainmaster.policies.parts.reason_words import span

    jobs = [engine.state.jobs[name] for name in names]
    longest = span(engine.now - min(job.pending_since for job in jobs))
    return f"{len(jobs):>6,} {to_gpus(sum(job.gpus for job in jobs)):>8,} {longest:>9}"


def _by_level(reasons: dict[str, Reason]) -> list[tuple[Level, list[str]]]:
    """Jobs by level, the level of most jobs first."""
    groups: dict[Level, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(reason.level, []).append(name)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _by_sentence(reasons: dict[str, Reason], names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Jobs that wait for the same, most first."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(reasons[name].common, []).append(name)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _named(names: Sequence[str]) -> str:
    from trainmaster.policies.parts.reason_words import names as some

    return some(names)
