"""`simulate`: many policies, capacities and seeds on one trace, in parallel processes.

The trace is loaded once; worker processes are forked with it in memory, so a run gives
the same figures whether it shares a process with others or not.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmaster.metrics.ledger import Ledger
from trainmaster.metrics.measures import (
    counted_jobs,
    deadline_measures,
    job_measures,
    seconds,
    tenant_measures,
)
from trainmaster.metrics.series import lanes, time_series
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError, OutputError, PolicyError, nearest
from trainmaster.model.numbers import whole
from trainmaster.policies.base import Policy
from trainmaster.policies.registry import Specification, title_of
from trainmaster.profiles import Profile, speed_on
from trainmaster.sim.arguments import (
    check_kinds,
    read_clusters,
    read_folder,
    read_seeds,
    read_specifications,
)
from trainmaster.sim.eventlog import EventLog
from trainmaster.sim.failures import read_failures
from trainmaster.sim.options import Options
from trainmaster.sim.prepare import Prepared, prepare
from trainmaster.sim.result import Result, RunRecord
from trainmaster.sim.run import Setup, policy_of, run
from trainmaster.sim.saving import Saving, saving_of
from trainmaster.sim.workers import call_forked, stop_with
from trainmaster.traces.trace import Trace

MODES = ("merged", "transferred", "warm", "frozen", "splits", "thaws", "rebuilds")

NOT_YET = (
    "samples_done",
    "samples_planned",
    "metric_loss_mean",
    "metric_loss_worst",
    "tolerance_missed",
    "members_harmed",
    "gain",
    "guaranteed",
    "broken",
)
"""Figures that apply to no policy so far."""

FAIRNESS = ("fairness_loss", "ltgf_min", "ltgf_max_over_min", "jain", "sharing_loss_share")

Progress = Callable[[int, int], None]
"""Is told (jobs ended, jobs in all), summed over the runs."""


def simulate(
    trace: Trace,
    cluster: Cluster | Sequence[Cluster] | tuple[Cluster, dict[str, float]],
    policy: Specification | Sequence[Specification] = "fifo",
    *,
    seed: int | Sequence[int] = 0,
    options: Options | None = None,
    profile: Profile | None = None,
    failures: str | Path | None = None,
    strict: bool = False,
    jobs: int = 1,
    events: str | Path | None = None,
    progress: Progress | None = None,
    snapshot_at: Sequence[float] = (),
    states: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Replay a trace under one or more policies.

    Args:
        trace: from `load_trace` or `synthesize`.
        cluster: one, or several for a sweep of capacities; or what `read_cluster` returns, with
            the weights of the file's tenants.
        policy: specifications such as `"srtf"`, `"fifo(backfill=easy),las"`, a `Policy` class,
            or a list of these.
        seed: one, or several.
        options: predictor, placement, costs, knobs, …
        profile: placement-dependent speeds, and durations where the trace has none.
        failures: CSV of node failures.
        strict: raise for a job that would be left out.
        jobs: number of processes; the figures don't depend on it.
        events: folder for one event log per run, named 0.jsonl, 1.jsonl, …
        progress: is told how many jobs have ended.
        snapshot_at: instants of the trace's clock, seconds, at which the state is written; one run only.
        states: folder for these, named state-200000.jsonl, …
        settings: fields of `Options` by name, instead of `options`.

    Raises:
        InputError: an unknown policy, knob or predictor, nothing to simulate, …

    >>> import trainmaster as tm
    >>> trace = tm.synthesize("philly-like", days=0.1, load=0.5, nodes=2, seed=0)
    >>> [run["policy"] for run in tm.simulate(trace, tm.Cluster.homogeneous(2, 8), "fifo,las").runs]
    ['fifo', 'las']
    """
    if settings:
        unknown = next((name for name in settings if name not in Options.__dataclass_fields__), None)
        if unknown is not None or options is not None:
            what = f"unknown setting {unknown!r}" if unknown else "settings and options exclude each other"
            known = [*Options.__dataclass_fields__, *simulate.__annotations__.keys() - {"return", "settings"}]
            raise InputError(what, mend=nearest(unknown or "", known))
    options = Options(**settings) if options is None else options
    if not isinstance(options, Options):
        raise InputError(f"options is {options!r:.60}, not Options", mend="tm.Options(...), or by name")
    check_kinds(trace, profile, failures, {"strict": strict})
    clusters, options = read_clusters(cluster, options)
    seeds = read_seeds(seed)
    names = read_specifications(policy)
    jobs = whole(jobs, "jobs")
    if jobs < 1:
        raise InputError(f"--jobs is {jobs}", mend="give at least 1 process")
    events = read_folder(events)
    if not (clusters and seeds and names):
        raise InputError("nothing to simulate", mend="give at least one cluster, one seed and one policy")
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise InputError(
            f"policy {title_of(twice)!r} stands twice", mend="name each policy with its knobs once"
        )
    saving = saving_of(snapshot_at, states, trace, profile, len(names) * len(seeds) * len(clusters))
    policies = [policy_of(name, options) for name in names]
    _check_knobs(options, policies)
    quotas = all("quota" in policy.features for policy in policies)
    prepared = prepare(trace, clusters, policies[0], profile=profile, strict=strict, quotas=quotas)
    tasks: list[_Task] = []
    for size in clusters:
        node_failures = read_failures(failures, size) if failures is not None else []
        if node_failures and options.placement == "pool":
            raise InputError(
                "a pool has no nodes that could fail", mend="use --placement pack with --failures"
            )
        for number in seeds:
            for name in names:
                speed = speed_on(profile, _placed(size, options)) if profile is not None else None
                setup = Setup(
                    prepared.jobs, prepared.durations, size, name, options, number, speed, node_failures
                )
                log = events / f"{len(tasks)}.jsonl" if events is not None else None
                tasks.append(_Task(setup, len(tasks), log, saving))
    result = Result(_trace_entry(trace, prepared), clusters[0], seeds[0], prepared.jobs)
    result.records = _run_all(tasks, jobs, progress)
    return result


@dataclass
class _Task:
    setup: Setup
    number: int
    log: Path | None
    saving: Saving | None


def _placed(cluster: Cluster, options: Options) -> Cluster:
    """The cluster that allocations name nodes of."""
    return cluster.as_pool() if options.placement == "pool" else cluster


def _check_knobs(options: Options, policies: list[Policy]) -> None:
    """Knobs must be meant for a policy that is simulated."""
    names = [title_of(policy.title) for policy in policies]
    for owner, knobs in options.knobs.items():
        if owner == "*":
            known = {knob.name for policy in policies for knob in policy.all_knobs()}
            for knob in knobs:
                if knob not in known:
                    raise InputError(f"no simulated policy has a knob {knob!r}", mend=nearest(knob, known))
        elif owner not in names:
            raise InputError(
                f"--set names policy {owner!r}, which is not simulated", mend=nearest(owner, names)
            )


def _run_all(tasks: list[_Task], processes: int, progress: Progress | None) -> list[RunRecord]:
    total = sum(len(task.setup.jobs) for task in tasks)
    # Jobs ended, by run: memory that forked workers share.
    done = memoryview(mmap.mmap(-1, 8 * len(tasks))).cast("q")
    parent = os.getpid()

    def report() -> None:
        if progress is not None:
            progress(sum(done), total)

    def count_here(number: int, ended: int) -> None:
        done[number] = ended
        report()

    def count_in_worker(number: int, ended: int) -> None:
        done[number] = ended
        stop_with(parent)

    if processes == 1 or len(tasks) == 1:
        records = [_run(task, count_here) for task in tasks]
        report()
        return records
    return call_forked(
        lambda number: _run(tasks[number], count_in_worker), len(tasks), processes, tick=report
    )


def _run(task: _Task, count: Callable[[int, int], None]) -> RunRecord:
    try:
        return _record(task, count)
    except PolicyError as error:
        if str(error).startswith("policy "):
            raise
        given = task.setup.policy
        raise PolicyError(f"policy {given if isinstance(given, str) else given.name}: {error}") from error
    except OverflowError:
        mend = "shorten durations, costs or settings"
        raise InputError("times add up to more than 292 years", mend=mend) from None


def _record(task: _Task, count: Callable[[int, int], None]) -> RunRecord:
    setup = task.setup
    policy = policy_of(setup.policy, setup.options)

    def progress(ended: int) -> None:
        count(task.number, ended)

    saving: dict[str, Any] = {}
    if task.saving is not None:
        saving = {"snapshots": task.saving.at, "keep": task.saving.keep}
    if task.log is None:
        outcome = run(setup, policy, progress=progress, **saving)
    else:
        try:
            with EventLog(task.log, task.number, _placed(setup.cluster, setup.options)) as log:
                outcome = run(setup, policy, watch=log, progress=progress, **saving)
        except OSError as error:
            raise OutputError(f"{task.log}: can't be written: {error.strerror}") from None
    count(task.number, len(setup.jobs))
    cluster = _placed(setup.cluster, setup.options)
    buckets = time_series(outcome.ledger)
    series = {
        "policy": policy.title,
        "nodes": len(setup.cluster.nodes),
        "seed": setup.seed,
        "buckets": buckets,
        "lanes": lanes(outcome.ledger, cluster, buckets),
    }
    return RunRecord.of(outcome.ledger, _summary(setup, policy, outcome.ledger, outcome.figures), series)


def _summary(setup: Setup, policy: Policy, ledger: Ledger, figures: dict[str, Any]) -> dict[str, Any]:
    options = setup.options
    window = {"warmup_s": options.warmup_s, "cooldown_s": options.cooldown_s}
    counted = counted_jobs(seconds([job.submit for job in ledger.jobs]), **window)
    measures = job_measures(ledger, setup.cluster.gpus, **window)
    return {
        "policy": policy.title,
        "knobs": dict(policy.settings),
        "predictor": options.predictor,
        "placement": options.placement,
        "relax_s": options.relax_s,
        "costs": asdict(options.costs),
        "warmup_s": options.warmup_s,
        "cooldown_s": options.cooldown_s,
        "cluster": {"gpus": setup.cluster.gpus, "nodes": len(setup.cluster.nodes)},
        "seed": setup.seed,
        **measures,
        **deadline_measures(ledger, counted),
        "modes": dict.fromkeys(MODES),
        **dict.fromkeys(NOT_YET),
        "tenants": tenant_measures(ledger, counted),
        **dict.fromkeys(FAIRNESS),
        **figures,
    }


def _trace_entry(trace: Trace, prepared: Prepared) -> dict[str, Any]:
    pairs = zip(prepared.jobs, prepared.durations, strict=True)
    return {
        "path": trace.path,
        "name": trace.name,
        "synthetic": trace.synthetic,
        "jobs": len(prepared.jobs),
        "dropped": dict(sorted(prepared.dropped.items())),
        "ignored": prepared.ignored,
        "recorded": _recorded(trace, prepared),
        **trace.clock,
        "span_s": (prepared.jobs[-1].submit - prepared.jobs[0].submit) / 1e9,
        "gpu_hours": sum(job.request.gpus * duration for job, duration in pairs) / 3.6e15,
    }


def _recorded(trace: Trace, prepared: Prepared) -> dict[str, Any] | None:
    """The waits that the log itself recorded: what the cluster's own scheduler did."""
    kept = {job.id for job in prepared.jobs}
    pairs = zip(trace.jobs, trace.truths, strict=True)
    waits = [truth.queue for job, truth in pairs if truth.queue is not None and job.id in kept]
    return {"jobs": len(waits), "mean_wait_s": sum(waits) / len(waits) / 1e9} if waits else None


def event_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the event logs of runs until they are joined."""
    return tempfile.TemporaryDirectory(prefix="trainmaster-events-")
