"""A scheduler that is restored from its state file decides as if it had never been interrupted."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.snapshot import capture
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.action import Action
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Event, NodeDown, NodeDrained, NodeUp
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.sim.eventlog import EventLog
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.rebuild import rebuild
from trainmaster.sim.run import Setup, Simulation, policy_of, run
from trainmaster.sim.snapshot import lines, parse
from trainmaster.testing.scenario_features import EVERY
from trainmaster.testing.schedules import FREE, Case

PLACEMENTS = ("pool", "pack", "spread")
PREDICTORS = ("history", "noisy:0.5", "oracle", "declared")
ROUNDS = (
    "srtf(round_s=60)",
    "standard(promise_s=300)",
    "timeslice(quantum_s=120)",
    "gittins(refresh_every=3)",
)
COLUMNS = ("first_start", "finish", "run", "lost", "preemptions")

NODES = tuple(Node(f"n{number}", 4) for number in range(4))
QUEUES = QueueTree(
    (
        Queue("red", guaranteed=6_000),
        Queue("green", guaranteed=2_000, limit=8_000, reclaim="fair-share"),
        Queue("blue", weight=0.5),
    )
)
CLUSTERS = {"plain": Cluster(NODES), "queues": Cluster(NODES, queues=QUEUES)}


def table(ledger: Ledger) -> list[tuple[Any, ...]]:
    """What jobs.csv is made of."""
    rows = zip(*(getattr(ledger, name) for name in COLUMNS), ledger.status, strict=True)
    return [(job.id, *row) for job, row in zip(ledger.jobs, rows, strict=True)]


def failures(rng: random.Random, until: int) -> list[tuple[int, NodeDown | NodeDrained | NodeUp]]:
    """A node that fails and one that is drained, each for a while."""
    found: list[tuple[int, NodeDown | NodeDrained | NodeUp]] = []
    for node, kind in ((0, NodeDown), (1, NodeDrained)):
        begin = rng.randrange(until)
        found += [(begin, kind(node)), (begin + rng.randrange(1, until), NodeUp(node))]
    return found


def setup_of(
    policy: str, placement: str, predictor: str, seed: int, cluster: str, *, fails: bool
) -> tuple[Setup, int]:
    """A simulation, and a random instant of it."""
    rng = random.Random(seed)
    case = Case.busy(seed, cluster=CLUSTERS[cluster])
    costs = rng.choice((FREE, Costs(), Costs(start_s=7)))
    options = Options(predictor, placement, rng.choice((None, None, 200.0)), costs, validate=True)
    until = case.jobs[-1].submit + sum(case.durations) // 12
    broken = failures(rng, until) if fails and placement != "pool" else []
    setup = Setup(case.jobs, case.durations, case.cluster, policy, options, seed, None, broken)
    return setup, rng.randrange(until)


def interrupted(setup: Setup, at: int) -> tuple[Ledger, list[str], Simulation]:
    """The state file written at `at`, and the simulation that goes on from it to its end, with the
    ledger kept until then."""
    held: dict[str, Any] = {}

    def keep(instant: int, simulation: Simulation, ledger: Ledger) -> None:
        held["lines"] = lines(instant, simulation, ledger)
        raise Interrupted

    ledger = Ledger(setup.speed)

    def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        ledger.record(now, events, actions)

    with contextlib.suppress(Interrupted):
        run(setup, policy_of(setup.policy, setup.options), watch=watch, snapshots=[at], keep=keep)
    simulation = parse(held["lines"]).resume(setup)
    assert lines(at, simulation)[:-1] == [line for line in held["lines"][:-1] if '"kind": "past"' not in line]
    while ledger.ended < len(setup.jobs) and (now := simulation.clock.next_instant()) is not None:
        ledger.record(now, *simulation.step(now))
    ledger.close(simulation.engine.now)
    return ledger, held["lines"], simulation


class Interrupted(Exception):  # noqa: N818 - it is no error
    """The simulation is not carried on."""


def check(setup: Setup, at: int) -> None:
    whole = run(setup, policy_of(setup.policy, setup.options)).ledger
    resumed, _, _ = interrupted(setup, at)
    assert table(resumed) == table(whole)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("policy", (*EVERY, *ROUNDS))
def test_every_policy_goes_on_from_a_state_as_without(policy: str, placement: str) -> None:
    for seed, predictor in enumerate(PREDICTORS):
        check(*setup_of(policy, placement, predictor, seed, "plain", fails=seed % 2 == 1))


@settings(max_examples=30)
@given(
    policy=st.sampled_from((*EVERY, *ROUNDS)),
    placement=st.sampled_from(PLACEMENTS),
    predictor=st.sampled_from(PREDICTORS),
    seed=st.integers(0, 1 << 32),
    cluster=st.sampled_from(sorted(CLUSTERS)),
    fails=st.booleans(),
)
def test_whatever_the_instant(
    policy: str, placement: str, predictor: str, seed: int, cluster: str, fails: bool
) -> None:
    check(*setup_of(policy, placement, predictor, seed, cluster, fails=fails))


def instants(setup: Setup, log: Path, at: int) -> tuple[Ledger, dict[str, Any]]:
    """Run with an event log; returns the state at an instant."""
    held: dict[str, Any] = {}

    def keep(instant: int, simulation: Simulation, ledger: Ledger) -> None:
        held.update(capture(simulation.engine))

    cluster = setup.cluster.as_pool() if setup.options.placement == "pool" else setup.cluster
    with EventLog(log, 0, cluster) as write:
        policy = policy_of(setup.policy, setup.options)
        outcome = run(setup, policy, watch=write, snapshots=[at], keep=keep)
    return outcome.ledger, held


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("policy", (*EVERY, *ROUNDS))
def test_the_state_rebuilt_from_the_log_is_the_state(policy: str, placement: str, tmp_path: Path) -> None:
    for seed, predictor in enumerate(PREDICTORS):
        setup, at = setup_of(policy, placement, predictor, seed, "queues", fails=seed % 2 == 0)
        log = tmp_path / "events.jsonl"
        _, state = instants(setup, log, at)
        fresh = Simulation(setup, policy_of(policy, setup.options), [])
        names = {job.id: job for job in setup.jobs}
        with log.open(encoding="utf-8") as file:
            engine = rebuild(file, fresh.engine, names, until=at)
        rebuilt = capture(engine)
        # Timers that no longer concern anybody are called off by the simulator's clock.
        rebuilt["engine"]["now"] = state["engine"]["now"]
        assert rebuilt == state
        assert state["engine"]["now"] <= at
