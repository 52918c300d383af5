"""One simulation: one trace, one cluster, one policy.

The loop hands all events of an instant to the engine, writes them into the ledger, and
lets the virtual cluster carry out the actions. Outcomes that fall on the same instant
come back as a follow-up batch.
"""

from __future__ import annotations

import gc
import resource
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainmaster.core.engine import Engine
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.action import Action
from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import PolicyError
from trainmaster.model.event import Event, Finished, NodeDown, NodeDrained, NodeUp, Stopped, Submitted, Timer
from trainmaster.model.job import Job
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Value
from trainmaster.policies.registry import Specification, create, title_of
from trainmaster.predict.choose import make_predictor
from trainmaster.sim.clock import Clock
from trainmaster.sim.options import Options
from trainmaster.sim.virtual_cluster import VirtualCluster

MAX_BATCHES_AT_ONCE = 10_000
"""More follow-up batches than this at one instant mean a policy that goes round in circles."""

Watcher = Callable[[int, Sequence[Event], Sequence[Action]], None]
"""Is shown every instant: (now, events, actions)."""


def policy_of(name: Specification, options: Options) -> Policy:
    """A fresh policy, with defaults that suit the options."""
    free = options.placement == "pool" and options.costs.free
    defaults: dict[str, Value] = {"min_run_s": 0.0} if free else {}
    overrides = {policy: dict(knobs) for policy, knobs in options.knobs.items() if policy != "*"}
    base = title_of(name)
    policy = create(
        name,
        overrides={base: overrides.get(base, {})},
        placement=options.placement,
        relax_s=options.relax_s,
        defaults=defaults,
    )
    common = options.knobs.get("*")
    if not common:
        return policy
    known = {knob.name for knob in policy.all_knobs()}
    own = {**{knob: value for knob, value in common.items() if knob in known}, **overrides.get(base, {})}
    return create(
        name, overrides={base: own}, placement=options.placement, relax_s=options.relax_s, defaults=defaults
    )


@dataclass
class Setup:
    """Everything that one simulation needs.

    Args:
        jobs: in order of submission, `jobs[i].sequence == i`, each of which fits.
        durations: true run time at reference speed, ns, by sequence.
        cluster: not yet pooled.
        policy: specification, as on the command line, or a class.
        options: see there.
        seed: of the noise and of random policies.
        speed: progress per unit of time on given GPUs; None = always 1.
        failures: (instant in ns, node event).
    """

    jobs: list[Job]
    durations: Sequence[int] | Mapping[int, int]
    cluster: Cluster
    policy: Specification
    options: Options
    seed: int = 0
    speed: Callable[[Job, Allocation], float] | None = None
    failures: Sequence[tuple[int, NodeDown | NodeDrained | NodeUp]] = field(default_factory=list)


class Simulation:
    """An engine, and the clock and the executor that it is simulated with.

    Args:
        setup: what to simulate.
        policy: a fresh policy.
        arrivals: jobs that are still to be submitted, in order.
    """

    def __init__(self, setup: Setup, policy: Policy, arrivals: list[Job]) -> None:
        options, durations = setup.options, setup.durations

        def duration(job: Job) -> int:
            return durations[job.sequence]

        self.setup = setup
        self.cluster = setup.cluster.as_pool() if options.placement == "pool" else setup.cluster
        speeds = {} if setup.speed is None else {"speed": setup.speed}
        predictor = make_predictor(options.predictor, duration, seed=setup.seed, **speeds)
        self.engine = Engine(
            self.cluster,
            policy,
            predictor,
            weights=options.weights,
            seed=setup.seed,
            validate=options.validate,
        )
        self.clock = Clock(arrivals)
        self.executor = VirtualCluster(self.clock, duration, options.costs, setup.speed)

    def step(self, now: int) -> tuple[list[Event], list[Action]]:
        """Let happen what is due at `now`, the clock's next instant: the events, and the actions
        that they led to. What comes of these at once is a step of its own."""
        batch = next_batch(self.clock, self.executor, now)
        actions = self.engine.handle(now, batch)
        if actions:
            self.executor.carry_out(now, actions)
        return batch, actions


Keeper = Callable[[int, Simulation, Ledger], None]
"""Is shown the simulation at an instant of its choice."""


@dataclass
class Outcome:
    """What one simulation leaves behind."""

    ledger: Ledger
    figures: dict[str, Any]


def run(
    setup: Setup,
    policy: Policy,
    *,
    watch: Watcher | None = None,
    progress: Callable[[int], None] | None = None,
    snapshots: Iterable[int] = (),
    keep: Keeper = lambda at, simulation, ledger: None,
) -> Outcome:
    """Simulate until every job has ended.

    Args:
        setup: what to simulate.
        policy: a fresh policy (it may learn).
        watch: is shown every instant.
        progress: is told now and then how many jobs have ended.
        snapshots: instants, ns; at each, all that happens at it included, `keep` is called.
        keep: gets (instant, simulation, ledger), to look at and leave as they are.

    Raises:
        PolicyError: the policy planned something impossible, or goes round in circles.
    """
    simulation = Simulation(setup, policy, setup.jobs)
    for at, event in setup.failures:
        simulation.clock.announce(at, event)
    ledger = Ledger(setup.speed)
    snapshots = deque(sorted(set(snapshots)))
    begun_cpu, begun_wall = time.process_time(), time.perf_counter()
    with rare_collections():
        times, events = _loop(simulation, ledger, watch, progress, snapshots, keep)
    for at in snapshots:
        keep(at, simulation, ledger)
    figures = {
        "decisions": simulation.engine.decisions,
        **_decision_times(times),
        "fallbacks": 0,
        "events": events,
        "cpu_s": time.process_time() - begun_cpu,
        "wall_s": time.perf_counter() - begun_wall,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return Outcome(ledger, figures)


def _loop(
    simulation: Simulation,
    ledger: Ledger,
    watch: Watcher | None,
    progress: Callable[[int], None] | None,
    snapshots: deque[int],
    keep: Keeper,
) -> tuple[array[int], int]:
    """Returns the time of each decision, ns, and the number of events."""
    engine, clock, executor = simulation.engine, simulation.clock, simulation.executor
    jobs = len(simulation.setup.jobs)
    times = array("q")
    perf_counter = time.perf_counter_ns
    events = batches = decisions = 0
    last = -1
    while ledger.ended < jobs and (now := clock.next_instant()) is not None:
        while snapshots and snapshots[0] < now:
            keep(snapshots.popleft(), simulation, ledger)
        batch = next_batch(clock, executor, now)
        events += len(batch)
        begun = perf_counter()
        actions = engine.handle(now, batch)
        if engine.decisions > decisions:
            decisions = engine.decisions
            times.append(perf_counter() - begun)
        ledger.record(now, batch, actions)
        if watch is not None:
            watch(now, batch, actions)
        if actions:
            executor.carry_out(now, actions)
        batches = batches + 1 if now == last else 0
        last = now
        if batches > MAX_BATCHES_AT_ONCE:
            raise PolicyError(
                f"policy {engine.policy.name}: over {MAX_BATCHES_AT_ONCE} decisions at {now / 1e9} s: "
                "it starts and stops the same jobs for ever"
            )
        if progress is not None and not events & 1023:
            progress(ledger.ended)
    ledger.close(engine.now)
    return times, events


def next_batch(clock: Clock, executor: VirtualCluster, now: int) -> list[Event]:
    """All events of the instant, in the order of their rank; the executor is told what concerns it."""
    batch: list[Event] = []
    timers: list[Event] = []
    for event in clock.due(now):
        kind = type(event)
        if kind is Timer:
            timers.append(event)
            continue
        batch.append(event)
        if kind is Finished:
            executor.on_finished(event)  # type: ignore[arg-type]
        elif kind is Stopped:
            executor.on_stopped(event)  # type: ignore[arg-type]
        elif kind is NodeDown:
            executor.on_node_down(event, now)  # type: ignore[arg-type]
    for job in clock.arrivals(now):
        submitted = Submitted(job)
        executor.on_submitted(submitted)
        batch.append(submitted)
    return batch + timers if timers else batch


def _decision_times(times: array[int]) -> dict[str, float | None]:
    if not times:
        return {"decision_ms_mean": None, "decision_ms_p99": None}
    import numpy as np

    # Millions of them: as Python integers they would be the peak of the memory.
    spent = np.frombuffer(times, dtype=np.int64)
    late = int(0.99 * len(spent))
    return {
        "decision_ms_mean": float(spent.mean()) / 1e6,
        "decision_ms_p99": float(np.partition(spent, late)[late]) / 1e6,
    }


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector pass over the trace: it holds no cycles, only many objects."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def unfinished(ledger: Ledger) -> list[str]:
    """Ids of jobs that never ended (their nodes stayed away)."""
    return [job.id for job, status in zip(ledger.jobs, ledger.status, strict=True) if status == "unfinished"]
