"""Many runs forward, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, Final

from trainmaster.core.state import JobState
from trainmaster.forecast.forward import PROBE, Forward, Run, probe_of
from trainmaster.model.errors import InputError
from trainmaster.model.job import Request
from trainmaster.model.reason import Reason
from trainmaster.model.units import GPU, SECOND, to_gpus, to_milli, to_ns
from trainmaster.sim.run import rare_collections
from trainmaster.sim.snapshot import Snapshot
from trainmaster.sim.workers import call_forked

HORIZON: Final = 7 * 86_400.0
"""Seconds after which a run stops looking."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles over runs, seconds after the snapshot; None = later than the runs looked.

    >>> Spread.of([30.0, 10.0, 20.0], runs=3)
    Spread(p10=10.0, p50=20.0, p90=30.0)
    >>> Spread.of([30.0, 10.0, 20.0], runs=5)
    Spread(p10=10.0, p50=30.0, p90=None)
    """

    p10: float | None
    p50: float | None
    p90: float | None

    @classmethod
    def of(cls, seconds: Sequence[float], runs: int) -> Spread:
        """Of so many runs; those without a value come last.

        The quantile p is at place p (n + 1): reality is one more draw, and as likely to fall between
        any two of the others.
        """
        ordered = [*sorted(seconds), *[inf] * (runs - len(seconds))]

        def at(level: float) -> float | None:
            place = min(max(level * (runs + 1) - 1, 0), runs - 1)
            low = int(place)
            high = min(low + 1, runs - 1) if place > low else low
            if ordered[high] == inf:
                return None
            return ordered[low] + (place - low) * (ordered[high] - ordered[low])

        return cls(at(0.1), at(0.5), at(0.9))


@dataclass(frozen=True, slots=True)
class JobForecast:
    """What the runs say of a waiting job.

    Args:
        job: its id.
        queue: its queue.
        gpus: it asks so many.
        waited_s: since it was submitted, or was stopped.
        start, end: seconds after the snapshot. Whoever hasn't ended when a run stops is taken to
            run on undisturbed.
        share: part of the runs in which it started.
        reason: why it waits now, in a sentence, and its level; "" = it wasn't asked for.
    """

    job: str
    queue: str
    gpus: float
    waited_s: float
    start: Spread
    end: Spread
    share: float
    reason: str = ""
    level: str = ""


@dataclass(frozen=True, slots=True)
class QueueForecast:
    """How long a new job would wait.

    Args:
        queue: that it is submitted to.
        gpus: it asks so many.
        wait: seconds.
        share: part of the runs in which it started.
    """

    queue: str
    gpus: float
    wait: Spread
    share: float


@dataclass(frozen=True)
class Forecast:
    """What is to be expected.

    Attributes:
        now_s: instant of the snapshot, seconds of its clock.
        policy: who decides.
        draws: number of runs.
        arrivals: whether later arrivals were drawn; False = the snapshot knows no past.
        horizon_s: how far the runs looked.
        jobs: waiting jobs, in the order in which they are expected to start.
        queues: new jobs, where they were asked for.
    """

    now_s: float
    policy: str
    draws: int
    arrivals: bool
    horizon_s: float
    jobs: list[JobForecast] = field(default_factory=list)
    queues: list[QueueForecast] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"schema": 1, **asdict(self)}


def forecast(
    snapshot: Snapshot,
    *,
    draws: int = 32,
    jobs: int = 1,
    seed: int = 0,
    horizon_s: float = HORIZON,
    only: str | None = None,
    submit: float | None = None,
    arrivals_until_s: float | None = None,
    first: Callable[[Forecast], None] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Forecast:
    """When the waiting jobs of a snapshot will start and end.

    Args:
        snapshot: from `read_snapshot`.
        draws: number of runs.
        jobs: number of processes; the figures don't depend on it.
        seed: of the draws.
        horizon_s: a run looks no further, seconds.
        only: this job alone; runs need not go further than to its start.
        submit: also how long a new job of so many GPUs would wait, in every queue.
        arrivals_until_s: no job is submitted from this instant of the snapshot's clock on.
        first: gets the forecast of one run as soon as it is there.
        progress: is told (runs done, runs in all).

    Raises:
        InputError: the snapshot contradicts itself, or an argument can't be.
    """
    if draws < 1 or jobs < 1:
        raise InputError(f"{draws} draws by {jobs} processes", mend="give at least 1 of both")
    if not 0 < horizon_s <= 1e9:
        raise InputError(f"the horizon is {horizon_s} s", mend="give seconds above 0")
    with rare_collections():
        return _forecast(
            snapshot, draws, jobs, seed, horizon_s, only, submit, arrivals_until_s, first, progress
        )


def _forecast(
    snapshot: Snapshot,
    draws: int,
    jobs: int,
    seed: int,
    horizon_s: float,
    only: str | None,
    submit: float | None,
    arrivals_until_s: float | None,
    first: Callable[[Forecast], None] | None,
    progress: Callable[[int, int], None],
) -> Forecast:
    until = None if arrivals_until_s is None else to_ns(arrivals_until_s)
    forward = Forward(snapshot, seed=seed, horizon=to_ns(horizon_s), arrivals_until=until)
    waiting = [job for job in forward.waiting() if only in (None, job.job.id)]
    hopeless = _hopeless(forward)
    names = [job.job.id for job in waiting if job.job.request not in hopeless]
    probes = (
        [] if submit is None else [probe_of(queue, _size(submit), snapshot.now) for queue in _queues(forward)]
    )

    def summary(runs: Sequence[Run], probed: Sequence[Run], reasons: Mapping[str, Reason]) -> Forecast:
        return Forecast(
            snapshot.now / SECOND,
            snapshot.policy,
            len(runs),
            bool(snapshot.past),
            horizon_s,
            sorted(
                (_job(job, runs, snapshot.now, reasons.get(job.job.id)) for job in waiting),
                key=_by_start,
            ),
            [_queue(probe.tenant, probe.request.gpus, probed, snapshot.now) for probe in probes],
        )

    def one(number: int) -> Run:
        if number < draws:
            return forward.run(number, names)
        return forward.run(number - draws, (), probes)

    total = draws * (2 if probes else 1)
    done = [one(0)]
    progress(1, total)
    if first is not None:
        first(summary(done, [], {}))
    done += _all(one, total, jobs, progress)
    return summary(done[:draws], done[draws:], forward.engine.explain_all())


def _all(
    one: Callable[[int], Run], total: int, processes: int, progress: Callable[[int, int], None]
) -> list[Run]:
    """Runs 1 to `total` - 1."""
    if processes == 1:
        found = []
        for number in range(1, total):
            found.append(one(number))
            progress(number + 1, total)
        return found
    return call_forked(lambda index: one(index + 1), total - 1, processes)


def _hopeless(forward: Forward) -> set[Request]:
    """Requests that find no room even on the empty cluster: a run needn't wait for them."""
    state = forward.engine.state
    empty = type(state.capacity)(state.cluster)
    for node, _ in enumerate(state.cluster.nodes):
        if not state.capacity.is_up(node):
            empty.set_up(node, False)
    policy: Any = forward.engine.policy
    relaxed = policy.relax is not None
    requests = dict.fromkeys(job.job.request for job in forward.waiting())
    return {each for each in requests if policy.placement.find(empty, each, relaxed=relaxed) is None}


def _queues(forward: Forward) -> list[str]:
    """Queues that jobs can be submitted to."""
    tree = forward.engine.state.cluster.queues
    if tree is not None:
        return [leaf.name for leaf in tree.leaves]
    tenants = {each.job.tenant for each in forward.snapshot.past}
    return sorted(tenants | {job.tenant for job in forward.snapshot.jobs.values()}) or [""]


def _size(gpus: float) -> int:
    milli = to_milli(gpus)
    if milli <= 0 or (milli > GPU and milli % GPU):
        raise InputError(f"--submit {gpus:g}", mend="give a whole number of GPUs, or a part of one")
    return milli


def _job(job: JobState, runs: Sequence[Run], now: int, reason: Reason | None) -> JobForecast:
    name = job.job.id
    starts = [(run.starts[name] - now) / SECOND for run in runs if name in run.starts]
    ends = [(run.ends[name] - now) / SECOND for run in runs if name in run.ends]
    return JobForecast(
        name,
        job.job.tenant,
        to_gpus(job.gpus),
        (now - job.pending_since) / SECOND,
        Spread.of(starts, len(runs)),
        Spread.of(ends, len(runs)),
        len(starts) / len(runs),
        "" if reason is None else reason.sentence,
        "" if reason is None else str(reason.level),
    )


def _queue(queue: str, milli: int, runs: Sequence[Run], now: int) -> QueueForecast:
    name = f"{PROBE}{queue}"
    waits = [(run.starts[name] - now) / SECOND for run in runs if name in run.starts]
    count = max(1, len(runs))
    return QueueForecast(queue, to_gpus(milli), Spread.of(waits, count), len(waits) / count)


def _by_start(job: JobForecast) -> tuple[float, float, str]:
    late = float("inf")
    start = job.start
    return (
        late if start.p50 is None else start.p50,
        late if start.p90 is None else start.p90,
        job.job,
    )
