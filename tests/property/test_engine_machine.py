"""The engine as a state machine: anything an executor or a user may do, in any order."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from test_engine import SPECIFICATIONS, clusters, requests
from world import World

from trainmaster.core.capacity import capacity_of
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Failed,
    Finished,
    Lost,
    Started,
    Stopped,
)
from trainmaster.model.job import Job
from trainmaster.model.units import SECOND
from trainmaster.policies.parts.backfill import Conservative
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

LENGTH = 20 * SECOND
"""What the oracle says of every job; a job may end sooner or later than that."""


class EngineMachine(RuleBasedStateMachine):
    """Every rule is something that can happen; `World` checks what the engine makes of it."""

    world: World

    @initialize(
        cluster=clusters(),
        specification=st.sampled_from(SPECIFICATIONS),
        placement=st.sampled_from(("pack", "pack", "spread", "pool")),
        relax_s=st.sampled_from((None, 15.0)),
        predictor=st.sampled_from(("oracle", "history", "declared")),
    )
    def begin(
        self, cluster: Cluster, specification: str, placement: str, relax_s: float | None, predictor: str
    ) -> None:
        policy = create(specification, placement=placement, relax_s=relax_s)
        placed = cluster.as_pool() if placement == "pool" else cluster
        self.world = World(placed, policy, make_predictor(predictor, lambda job: LENGTH))
        self.relaxed = relax_s is not None

    @rule(data=st.data(), count=st.integers(1, 3), priority=st.integers(0, 2), tenant=st.sampled_from("abc"))
    def submit(self, data: st.DataObject, count: int, priority: int, tenant: str) -> None:
        world = self.world
        request = data.draw(requests(world.cluster))
        empty = capacity_of(world.cluster)
        assume(world.policy.placement.find(empty, request, relaxed=self.relaxed) is not None)
        first = len(world.jobs)
        world.submit(
            *(
                Job(f"j{row}", row, world.now, request, tenant=tenant, priority=priority, declared=LENGTH)
                for row in range(first, first + count)
            )
        )

    @rule(seconds=st.sampled_from((0.5, 1, 5, 20, 100)))
    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + round(seconds * SECOND))

    def one(self, data: st.DataObject, *states: str) -> str:
        names = self.world.in_state(*states)
        assume(names)
        return str(data.draw(st.sampled_from(names)))

    @precondition(lambda self: self.world.in_state("starting"))
    @rule(data=st.data())
    def started(self, data: st.DataObject) -> None:
        self.world.tell(Started(self.one(data, "starting")))

    @precondition(lambda self: self.world.in_state("stopping", "killed"))
    @rule(data=st.data())
    def stopped(self, data: st.DataObject) -> None:
        name = self.one(data, "stopping", "killed")
        if self.world.processes[name].state == "stopping":
            self.world.tell(CheckpointWritten(name, self.world.processes[name].done))
        self.world.tell(Stopped(name))

    @precondition(lambda self: self.world.in_state("running", "stopping"))
    @rule(data=st.data())
    def finished(self, data: st.DataObject) -> None:
        self.world.tell(Finished(self.one(data, "running", "stopping")))

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data(), own_fault=st.booleans())
    def ends_badly(self, data: st.DataObject, own_fault: bool) -> None:
        name = self.one(data, "starting", "running", "stopping", "killed")
        self.world.tell(Failed(name, "oom") if own_fault else Lost(name, 0, "gone"))

    @precondition(lambda self: self.world.waiting or self.world.processes)
    @rule(data=st.data())
    def cancelled(self, data: st.DataObject) -> None:
        world = self.world
        names = sorted(world.waiting) + world.in_state("starting", "running", "stopping")
        assume(names)
        world.tell(Cancelled(data.draw(st.sampled_from(names))))

    @precondition(lambda self: not self.world.cluster.pooled)
    @rule(data=st.data(), at_once=st.booleans())
    def node_down(self, data: st.DataObject, at_once: bool) -> None:
        world = self.world
        up = [node for node in range(len(world.cluster.nodes)) if node not in world.down]
        assume(up)
        world.node_down(data.draw(st.sampled_from(up)), at_once=at_once)

    @precondition(lambda self: self.world.down)
    @rule()
    def node_up(self) -> None:
        self.world.node_up(min(self.world.down))

    @rule()
    def asked_again_the_policy_has_nothing_to_add(self) -> None:
        """Nothing happened, so nothing is to be done."""
        engine = self.world.engine
        # Between two rounds it has not been asked yet; under conservative, jobs that were just
        # started were among those that get a reservation, and others are now.
        if engine._ask or isinstance(engine.policy.walk, Conservative):  # type: ignore[attr-defined]
            return
        view: Any = engine._view
        view.begin(engine.now)
        self.world._plan(view)
        steps = [*view.started, *view.preempted]
        view.undo()
        assert not steps, f"asked again, it would also take {steps}"

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        lengths = {
            name: max(world.progress(name), 0) + LENGTH for name in world.jobs if name not in world.ended
        }
        world.settle(random.Random(0), lengths, 5 * SECOND)


EngineMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestEngineMachine = EngineMachine.TestCase
