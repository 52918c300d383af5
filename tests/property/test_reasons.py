"""Reasons under anything that may happen: there is always one, and to ask for it changes nothing."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from test_engine import SPECIFICATIONS
from world import World

from trainmaster.core.capacity import capacity_of
from trainmaster.core.explain import would_start
from trainmaster.core.snapshot import capture
from trainmaster.core.state import JobState
from trainmaster.model.action import Action
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Cancelled, Finished, Started, Stopped, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Phase
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.reason import Level, Reason
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

LENGTH = 20 * SECOND
WAITING = (Phase.PENDING, Phase.NOMINATED)
QUEUES = QueueTree(
    (
        Queue("a", guaranteed=2000, reclaim="quota"),
        Queue("b", guaranteed=1000, limit=4000, reclaim="fair-share"),
        Queue("c", weight=2, reclaim="none"),
    )
)


class QueuedWorld(World):
    """A world whose queues have limits: a job may be stopped for one, not only for its GPUs."""

    def _check_evictions(self, actions: Iterable[Action]) -> None:
        if self.cluster.queues is None:
            super()._check_evictions(actions)


class Life:
    """A random world, one step after the other."""

    def __init__(self, seed: int, specification: str, placement: str) -> None:
        self.random = rng = random.Random(seed)
        queues = QUEUES if specification.startswith("standard") and rng.random() < 0.6 else None
        nodes = tuple(
            Node(
                f"n{number}",
                rng.choice((1, 2, 4, 4)),
                rng.choice("AB"),
                (("disk", rng.choice(("fast", "slow"))),),
                (f"rack-{number % 2}",),
            )
            for number in range(rng.randint(1, 5))
        )
        cluster = Cluster(nodes, levels=("rack",), queues=queues)
        placed = cluster.as_pool() if placement == "pool" else cluster
        relax_s = rng.choice((None, None, 15.0))
        policy = create(specification, placement=placement, relax_s=relax_s)
        predictor = make_predictor(rng.choice(("oracle", "declared")), lambda job: LENGTH)
        self.world = QueuedWorld(placed, policy, predictor)
        self.relaxed = relax_s is not None

    def step(self) -> None:
        """Something happens."""
        world, rng = self.world, self.random
        rng.choice((self.submit, self.submit, self.wait, self.started, self.started, self.ended, self.node))()
        assert world.engine.now <= world.now

    def submit(self) -> None:
        world, rng = self.world, self.random
        first = len(world.jobs)
        request = self.request()
        empty = capacity_of(world.cluster)
        if world.policy.placement.find(empty, request, relaxed=self.relaxed) is None:
            request = Request(GPU)
        world.submit(
            *(
                Job(
                    f"j{row}",
                    row,
                    world.now,
                    request,
                    tenant=rng.choice("abc"),
                    priority=rng.randint(0, 2),
                    declared=LENGTH,
                    not_before=rng.choice((0, 0, 0, 0, world.now + 5 * SECOND)),
                )
                for row in range(first, first + rng.randint(1, 3))
            )
        )

    def request(self) -> Request:
        rng, cluster = self.random, self.world.cluster
        pods = rng.choice((None, None, 1, 2, 3))
        each = rng.choice((500, 1000, 1000, 2000, 4000)) if pods else GPU * rng.randint(1, cluster.gpus)
        return Request(
            each * (pods or 1),
            rng.choice(((), (), (), ("A",), ("B", "A"))),
            preemptible=rng.random() < 0.8,
            pods=pods,
            labels=rng.choice(((), (), (), (("disk", "fast"),))),
            within=rng.choice(("", "", "", "rack")),
        )

    def wait(self) -> None:
        self.world.advance(self.world.now + round(self.random.choice((0.5, 1, 5, 20)) * SECOND))

    def one(self, *states: str) -> str | None:
        names = self.world.in_state(*states)
        return self.random.choice(names) if names else None

    def started(self) -> None:
        name = self.one("starting")
        if name is not None:
            self.world.tell(Started(name))

    def ended(self) -> None:
        stopping, running = self.one("stopping", "killed"), self.one("running")
        if stopping is not None and self.random.random() < 0.7:
            self.world.tell(Stopped(stopping))
        elif running is not None:
            self.world.tell(self.random.choice((Finished, Cancelled))(running))

    def node(self) -> None:
        world, rng = self.world, self.random
        if world.down:
            world.node_up(min(world.down))
        elif rng.random() < 0.3 and not world.cluster.pooled:
            world.node_down(rng.randrange(len(world.cluster.nodes)))

    def waiting(self) -> list[JobState]:
        return [job for job in self.world.engine.state.jobs.values() if job.phase in WAITING]


LIVES = [(spec, place) for spec in SPECIFICATIONS for place in ("pack", "spread", "pool")]


@pytest.mark.parametrize(("specification", "placement"), LIVES)
def test_everybody_who_waits_has_a_reason_and_asking_changes_nothing(
    specification: str, placement: str
) -> None:
    for seed in range(1):
        life = Life(seed, specification, placement)
        for _ in range(40):
            life.step()
            engine = life.world.engine
            before = capture(engine)
            reasons = engine.explain_all()
            assert capture(engine) == before
            assert [*reasons] == [job.job.id for job in life.waiting()]
            for name, reason in reasons.items():
                check(reason)
                if reason.level is Level.POLICY:
                    # Under standard, what started last can open the way for who was tried before.
                    assert specification.startswith("standard"), f"{name} {reason.sentence}"
                    assert would_start(engine, name, engine.state.jobs[name].job.request)
            if reasons:
                name = life.random.choice([*reasons])
                helped = engine.explain(name)
                assert replace(helped, hints=()) == reasons[name]
                assert capture(engine) == before


def check(reason: Reason) -> None:
    """What every reason has."""
    assert reason.sentence == reason.sentence.strip() and ".." not in reason.sentence
    assert "asked_gpus" in reason.numbers or reason.level in (
        Level.ORDER,
        Level.EARLIEST_START,
        Level.QUEUE_UNKNOWN,
        Level.ROUND,
    )


@pytest.mark.parametrize(("specification", "placement"), LIVES)
def test_what_is_said_to_start_starts(specification: str, placement: str) -> None:
    """The trial says what happens when the job is withdrawn and asks for something else."""
    for seed in range(1):
        life = Life(seed, specification, placement)
        for _ in range(40):
            life.step()
            world, engine = life.world, life.world.engine
            fresh = [job for job in life.waiting() if not job.ran and job.phase is Phase.PENDING]
            # Waiting anew from now on would change whose turn it is, and what is relaxed.
            fresh = [job for job in fresh if job.pending_since == world.now == engine.now]
            if not fresh or engine.policy.round:
                continue
            job = life.random.choice(fresh)
            request = life.request()
            said = would_start(engine, job.job.id, request)
            other = copy.deepcopy(world)
            instead = replace(job.job, id=f"{job.job.id}-instead", request=request)
            other.tell(Cancelled(job.job.id), Submitted(instead))
            assert said == (other.engine.state.jobs[instead.id].phase in (Phase.NOMINATED, Phase.STARTING))
