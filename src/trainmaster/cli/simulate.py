"""`trainmaster simulate`: replay a trace under one or more policies."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.support import (
    COLUMNS_HELP,
    FORMAT_HELP,
    FROM_HELP,
    TO_HELP,
    emit_json,
    output,
    own_columns,
    path,
    progress_bar,
    say,
    sliced,
)
from trainmaster.model.calendar import recorded_calendar
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.text import printable
from trainmaster.model.units import GPU, SECOND

if TYPE_CHECKING:
    from trainmaster.model.cluster import Cluster
    from trainmaster.sim.result import Result
    from trainmaster.traces.trace import Trace

EXAMPLE = (
    "Example: trainmaster simulate week.csv.gz --policy 'fifo,fifo(backfill=easy),srtf' "
    "--nodes 16,32 --gpus-per-node 8 --out out/week"
)


def simulate(
    trace: Annotated[
        Path, typer.Argument(parser=path, metavar="TRACE", help="A job log of any known format.")
    ],
    policy: Annotated[
        str,
        typer.Option(help="Policies, comma-separated; knobs inline: 'fifo,fifo(backfill=easy)'; or FILE.py."),
    ] = "fifo,srtf,las",
    baseline: Annotated[
        str | None, typer.Option(help="The policy that the report compares the others with.")
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Number of nodes; several, 16,32,48, for a sweep.")
    ] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs of each node.")] = None,
    cluster: Annotated[
        Path | None, typer.Option(parser=path, help="The cluster as a YAML file, instead of --nodes.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME.KNOB=VALUE; '*' for all policies; placement.relax=S."),
    ] = None,
    predictor: Annotated[str, typer.Option(help="oracle | declared | history | noisy:SIGMA")] = "history",
    placement: Annotated[str, typer.Option(help="pool | pack | spread")] = "pack",
    checkpoint_cost: Annotated[float, typer.Option(help="Seconds from a stop to free GPUs.")] = 6.0,
    restore_cost: Annotated[float, typer.Option(help="Seconds until a stopped job goes on.")] = 24.0,
    start_cost: Annotated[float, typer.Option(help="Seconds until a new job makes progress.")] = 0.0,
    checkpoint_interval: Annotated[
        float, typer.Option(help="Seconds between a job's own checkpoints.")
    ] = 1800.0,
    profile: Annotated[
        Path | None,
        typer.Option(parser=path, help="Speed profile: placement matters, models have speeds."),
    ] = None,
    failures: Annotated[
        Path | None,
        typer.Option(parser=path, help="CSV time_s,node,event: nodes that go down and up."),
    ] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help=FROM_HELP)] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help=TO_HELP)] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many jobs.")] = None,
    warmup: Annotated[float, typer.Option(help="Don't count jobs of the first so many seconds.")] = 0.0,
    cooldown: Annotated[float, typer.Option(help="Don't count jobs of the last so many seconds.")] = 0.0,
    seed: Annotated[str, typer.Option(help="Seed; several, 0,1,2, for as many runs.")] = "0",
    jobs: Annotated[int, typer.Option(help="Runs at the same time, each in a process.")] = 1,
    format: Annotated[str, typer.Option(help=FORMAT_HELP)] = "auto",
    columns: Annotated[list[str] | None, typer.Option(help=COLUMNS_HELP)] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row at fault (exit code 2).")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="Write events.jsonl too.")] = False,
    snapshot_at: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Write state-T.jsonl too: the state at this instant; repeatable."),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Re-check every invariant at each instant.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=path, help="Folder for summary.json, jobs.csv, series.json, report.html."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
) -> None:
    """Replay a job log under scheduling policies and compare them."""
    from trainmaster.sim import Costs, Options
    from trainmaster.sim import simulate as run

    if events and out is None:
        raise InputError("--events writes a file", mend="say where with --out DIR")
    if snapshot_at and out is None:
        raise InputError("--snapshot-at writes files", mend="say where with --out DIR")
    if out is not None and out.exists() and not out.is_dir():
        raise InputError("is not a folder", file=out, mend="give --out a folder")
    if out is not None:
        _refuse_to_replace(out, [trace, failures, cluster, profile], [*_split(policy), format])
    _check_baseline(baseline, policy)
    clusters, weights = _clusters(nodes, gpus_per_node, cluster)
    knobs, relax_s = _knobs(settings or [])
    options = Options(
        predictor=predictor,
        placement=placement,
        relax_s=relax_s,
        costs=Costs(checkpoint_cost, restore_cost, start_cost, checkpoint_interval),
        warmup_s=warmup,
        cooldown_s=cooldown,
        validate=validate,
        knobs=knobs,
        weights=weights,
    )
    seeds = _numbers(seed, "--seed", 0)
    with ExitStack() as stack:
        logs = Path(stack.enter_context(_event_folder())) if events else None
        states = Path(stack.enter_context(_event_folder())) if snapshot_at else None
        update = stack.enter_context(progress_bar("simulating"))
        loaded = _counted(_load(trace, format, strict, columns, start, end, limit), warmup, cooldown)
        result = run(
            loaded,
            clusters,
            policy,
            seed=seeds,
            options=options,
            profile=_profile(profile),
            failures=failures,
            strict=strict,
            jobs=jobs,
            events=logs,
            progress=update,
            snapshot_at=_instants(snapshot_at or [], loaded),
            states=states,
        )
        result.command = _command(sys.argv[1:])
        result.baseline = baseline
        written = _write(result, out, logs, states) if out is not None else []
    _show(result, written, json)


def _split(policies: str) -> list[str]:
    """The policies' names and files, without their knobs."""
    from trainmaster.policies.registry import split, title_of

    return [title_of(each) for each in split(policies)]


def _refuse_to_replace(out: Path, files: list[Path | None], plugins: list[str]) -> None:
    """The results must not take the place of what the run reads, Python files included."""
    from trainmaster.model.plugin import split_file
    from trainmaster.sim.result_folder import refuse_to_replace

    code = [named[0] for name in plugins if (named := split_file(name)) is not None]
    refuse_to_replace(out, [*(file for file in files if file is not None), *code])


def _check_baseline(baseline: str | None, policies: str) -> None:
    from trainmaster.policies.registry import split

    names = split(policies)
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline}: not among the policies", mend=nearest(baseline, names))


def _command(words: list[str]) -> str:
    """The call without what doesn't change the figures, for the record."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word == "--json":
            skip = False
        elif word in ("--out", "--jobs"):
            skip = True
        elif not word.startswith(("--out=", "--jobs=")):
            kept.append(word)
    return printable(shlex.join(["trainmaster", *kept]))


def _load(
    path: Path,
    format: str,
    strict: bool,
    columns: list[str] | None,
    start: str | None,
    end: str | None,
    limit: int | None,
) -> Trace:
    from trainmaster.traces import load_trace, slice_trace

    loaded = load_trace(path, format=format, strict=strict, columns=own_columns(columns))
    part = sliced(loaded, start, end)
    return part if limit is None else slice_trace(part, limit=limit)


def _counted(trace: Trace, warmup: float, cooldown: float) -> Trace:
    """The trace; refused when all its jobs are warm-up or cool-down."""
    if not trace.jobs or not (warmup or cooldown):
        return trace
    first, last = (trace.jobs[at].submit / SECOND for at in (0, -1))
    if not any(first + warmup <= job.submit / SECOND <= last - cooldown for job in trace.jobs):
        raise InputError(
            f"--warmup {warmup:g} and --cooldown {cooldown:g} leave no job to count",
            mend=f"jobs are submitted over {last - first:g} s",
        )
    return trace


def _clusters(
    nodes: str | None, gpus_per_node: int | None, path: Path | None
) -> tuple[list[Cluster], dict[str, float]]:
    from trainmaster.model.cluster import Cluster
    from trainmaster.sim.cluster_file import read_cluster

    if path is not None:
        if nodes is not None or gpus_per_node is not None:
            raise InputError("--cluster and --nodes exclude each other", mend="give one of them")
        cluster, weights = read_cluster(path)
        return [cluster], weights
    if nodes is None or gpus_per_node is None:
        raise InputError(
            "the cluster is not given", mend="--nodes N --gpus-per-node G, or --cluster FILE.yaml"
        )
    return [Cluster.homogeneous(count, gpus_per_node) for count in _numbers(nodes, "--nodes", 1)], {}


def _numbers(text: str, option: str, lowest: int) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 100 and int(word) >= lowest for word in words):
        raise InputError(
            f"{option} {text:.100}: expected whole numbers >= {lowest}", mend=f"for example {option} 16,32"
        )
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise InputError(f"{option} {text}: a number stands twice")
    return numbers


def _knobs(settings: list[str]) -> tuple[dict[str, dict[str, object]], float | None]:
    """Knobs by policy, and the relaxation of placement."""
    knobs: dict[str, dict[str, object]] = {}
    relax_s: float | None = None
    for setting in settings:
        left, equals, value = setting.partition("=")
        owner, dot, knob = left.strip().rpartition(".")
        if not (equals and dot and owner and knob):
            raise InputError(f"can't read --set {setting}", mend="write NAME.KNOB=VALUE")
        if owner == "placement":
            twice = relax_s is not None
            relax_s = _relax(knob, value.strip())
        else:
            own = knobs.setdefault(owner, {})
            twice = knob in own
            own[knob] = value.strip()
        if twice:
            raise InputError(f"--set {owner}.{knob} stands twice", mend="give it once")
    return knobs, relax_s


def _relax(knob: str, value: str) -> float:
    if knob != "relax":
        raise InputError(f"placement has no knob {knob!r}", mend="placement.relax=SECONDS")
    try:
        return float(value)
    except ValueError:
        raise InputError(f"placement.relax={value}: not a number", mend="give seconds") from None


def _profile(path: Path | None) -> Any:
    if path is None:
        return None
    from trainmaster.profiles import load_profile

    return load_profile(path)


def _event_folder() -> Any:
    from trainmaster.sim.sweep import event_folder

    return event_folder()


def _instants(texts: list[str], trace: Trace) -> list[float]:
    from trainmaster.model.calendar import read_instant

    return [read_instant(text, "--snapshot-at", trace.calendar) for text in texts]


def _write(result: Result, out: Path, logs: Path | None, states: Path | None) -> list[Path]:
    from trainmaster.report import write_report
    from trainmaster.sim.saving import move_states

    events = None
    if logs is not None:
        events = [logs / f"{number}.jsonl" for number in range(len(result.records))]
    written = result.write(out, events=events, report=write_report)
    return written if states is None else [*written, *move_states(states, out)]


def _show(result: Result, written: list[Path], json: bool) -> None:
    from trainmaster.report import comparison_text

    if json:
        emit_json(result.document)
        return
    say(comparison_text(result.runs))
    for line in _remarks(result):
        say(line)
    for file in written:
        if file.name == "report.html":
            say(f"report: {file}")
        elif file.name.startswith("state-"):
            say(f"state: {file}")
    output().flush()


def _remarks(result: Result) -> list[str]:
    lines = []
    dropped = result.trace["dropped"]
    if dropped:
        total = sum(dropped.values())
        reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in dropped.items())
        lines.append(f"left out: {total} rows ({reasons})")
    calendar = recorded_calendar(result.trace)
    if calendar is not None and calendar.zero:
        lines.append(f"clock: 0 s is {calendar.text(0)}{'' if calendar.zone else ', in the time of the log'}")
    recorded = result.trace["recorded"]
    if recorded:
        minutes = recorded["mean_wait_s"] / 60
        lines.append(f"as recorded in the log: mean wait {minutes:.1f} min over {recorded['jobs']} jobs")
    for feature, count in result.trace["ignored"].items():
        lines.append(f"not modelled: {feature}, asked by {count} jobs")
    if result.cluster.queues is not None:
        doubts = result.cluster.queues.warnings(result.cluster.gpus * GPU)
        lines.extend(f"cluster file: {doubt}" for doubt in doubts)
    if any(run["predictor"] == "declared" for run in result.runs):
        silent = sum(1 for job in result.submitted if job.declared is None)
        if silent:
            lines.append(
                f"declared times: {silent} of {len(result.submitted)} jobs have none; history is used"
            )
    for run in result.runs:
        if not run["jobs"]:
            lines.append(f"{run['policy']}: --warmup and --cooldown leave no job to count")
        if run["finished"] < run["jobs"]:
            lines.append(f"{run['policy']}: {run['jobs'] - run['finished']} jobs never finished")
    return lines
