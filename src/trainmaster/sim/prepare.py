"""From a trace to jobs that can be simulated: every one has a duration and fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmaster.core.capacity import capacity_of
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU
from trainmaster.policies.base import Policy
from trainmaster.profiles import Profile
from trainmaster.traces.trace import Trace, Truth


class Prepared:
    """Jobs with durations, and what had to be left out.

    Attributes:
        jobs, durations: parallel; `jobs[i].sequence == i`, durations in ns.
        dropped: rows left out, by reason, those dropped while reading included.
        ignored: what jobs ask for that the simulation doesn't model, by feature.
    """

    def __init__(self, trace: Trace) -> None:
        self.jobs: list[Job] = []
        self.durations: list[int] = []
        self.dropped: dict[str, int] = dict(trace.problems.dropped)
        self.ignored: dict[str, int] = {}

    def drop(self, reason: str) -> None:
        """Count a row that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def prepare(
    trace: Trace,
    clusters: Sequence[Cluster],
    policy: Policy,
    *,
    profile: Profile | None = None,
    strict: bool = False,
    quotas: bool = False,
) -> Prepared:
    """Leave out jobs without a duration and jobs that don't fit the smallest cluster.

    `quotas` tells whether every policy heeds the clusters' queues.

    All clusters of a sweep are given the same jobs, so that their figures compare.

    Raises:
        InputError: nothing is left; or, with `strict`, anything is left out.
    """
    prepared = Prepared(trace)
    fits = _Fits(clusters, policy)
    runs = _Runs(clusters, profile)
    for job, truth in zip(trace.jobs, trace.truths, strict=True):
        duration = _duration(job, truth, profile)
        reason = "no_duration" if duration is None else fits.misfit(job.request) or runs.misfit(job)
        if reason:
            if strict:
                raise InputError(
                    f"job {job.id}: {_WORDS[reason](job)}", file=trace.path, mend="or leave out --strict"
                )
            prepared.drop(reason)
            continue
        assert duration is not None
        sequence = len(prepared.jobs)
        prepared.jobs.append(job if job.sequence == sequence else replace(job, sequence=sequence))
        prepared.durations.append(duration)
    if not prepared.jobs:
        raise InputError(f"no job is left to simulate: {_why_none(trace, prepared)}", file=trace.path)
    prepared.ignored = _ignored(prepared.jobs, clusters, typed=runs.gpu_types != [""], quotas=quotas)
    if profile is not None:
        unknown = sum(profile.unknown(prepared.jobs, runs.gpu_types).values())
        if unknown:
            prepared.ignored["speeds that the profile doesn't list"] = unknown
    return prepared


def _why_none(trace: Trace, prepared: Prepared) -> str:
    """What happened to the jobs, and the first row at fault while reading."""
    if not prepared.dropped:
        return "the trace is empty"
    ordered = sorted(prepared.dropped.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in ordered)
    example = trace.problems.example(ordered[0][0])
    return f"{reasons}{'; ' if example else ''}{example}"


_WORDS = {
    "no_duration": lambda job: f"no duration, and no profile for model {_model(job)!r}",
    "larger_than_cluster": lambda job: f"asks {job.request.gpus / GPU:g} GPUs, which the cluster can't offer",
    "model_does_not_run": lambda job: f"the profile says that model {_model(job)!r} doesn't run here",
    "gpu_type_not_offered": lambda job: (
        f"asks GPU type {'|'.join(job.request.gpu_types)}, which no node offers"
    ),
}


def _model(job: Job) -> str:
    return job.workload.model if job.workload else ""


def _duration(job: Job, truth: Truth, profile: Profile | None) -> int | None:
    if truth.duration is not None or profile is None:
        return truth.duration
    return profile.duration(job, profile.reference)


class _Runs:
    """Whether a job's model runs at all on every type of GPU that it may be given."""

    def __init__(self, clusters: Iterable[Cluster], profile: Profile | None) -> None:
        self.gpu_types = sorted({node.gpu_type for cluster in clusters for node in cluster.nodes})
        self._profile = profile

    def misfit(self, job: Job) -> str:
        """Why the job can't run; empty if it can."""
        if self._profile is None or job.workload is None:
            return ""
        asked = job.request.gpu_types
        wanted = {name.casefold() for name in asked}
        types = [name for name in self.gpu_types if not asked or not name or name.casefold() in wanted]
        runs = all(self._profile.runs_on(job, name) for name in types)
        return "" if runs else "model_does_not_run"


class _Fits:
    """Whether a request fits every cluster when it is empty; asked once per request."""

    def __init__(self, clusters: Iterable[Cluster], policy: Policy) -> None:
        pooled = policy.placement.name == "pool"
        self._capacities = [capacity_of(c.as_pool() if pooled else c) for c in clusters]
        self._policy = policy
        self._known: dict[Request, str] = {}

    def misfit(self, request: Request) -> str:
        """Why the request never fits; empty if it does."""
        reason = self._known.get(request)
        if reason is None:
            reason = self._known[request] = self._find_out(request)
        return reason

    def _find_out(self, request: Request) -> str:
        relaxed = self._policy.relax is not None
        for capacity in self._capacities:
            if not capacity.eligible(request):
                return "gpu_type_not_offered"
            if self._policy.placement.find(capacity, request, relaxed=relaxed) is None:
                return "larger_than_cluster"
        return ""


def _ignored(jobs: list[Job], clusters: Sequence[Cluster], *, typed: bool, quotas: bool) -> dict[str, int]:
    """Features of jobs and clusters that this simulation doesn't model, with the number of jobs
    that they concern."""
    counts = {
        "queues (guarantees, limits, reclaim)": (
            len(jobs) if not quotas and any(cluster.queues for cluster in clusters) else 0
        ),
        "topology, for more than one GPU": (
            sum(1 for job in jobs if job.request.gpus > GPU)
            if any(cluster.levels for cluster in clusters)
            else 0
        ),
        "depends_on": sum(1 for job in jobs if job.depends_on),
        "elastic sizes": sum(1 for job in jobs if job.request.min_gpus or job.request.max_gpus),
        "GPU types (the cluster names none: give --cluster)": (
            0 if typed else sum(1 for job in jobs if job.request.gpu_types)
        ),
        "requested number of nodes": sum(1 for job in jobs if job.request.nodes),
    }
    return {feature: count for feature, count in counts.items() if count}
