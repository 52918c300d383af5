"""The engine under an executor that answers late, in any order, or never."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world import World

from trainmaster.core.capacity import capacity_of
from trainmaster.core.engine import Engine, replay
from trainmaster.core.invariants import check
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import PolicyError
from trainmaster.model.event import Cancelled, Failed, Lost
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Phase
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import SECOND
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

SPECIFICATIONS = (
    "fifo",
    "fifo(backfill=greedy)",
    "fifo(backfill=easy)",
    "fifo(backfill=conservative,depth=3)",
    "sjf",
    "srtf(min_run_s=0)",
    "srtf(min_run_s=7,round_s=10)",
    "srsf(min_run_s=5)",
    "las(limit=20,queues=3,factor=2,min_run_s=4)",
    "gittins(first_limit=10,levels=4,refresh_every=2,history=10,min_run_s=3)",
    "priority(ageing_s=20,min_run_s=3)",
    "priority(preempt=false)",
    "drf(min_run_s=3)",
    "drf(preempt=false)",
    "timeslice(quantum_s=5,min_run_s=2)",
    "standard(min_run_s=3)",
    "standard(min_run_s=0,promise_s=5)",
)


@dataclass(repr=False)
class Case:
    """What happens in one random run."""

    cluster: Cluster
    placement: str
    relax_s: float | None
    jobs: list[Job]
    durations: dict[str, int]
    script: list[tuple[int, str]]
    predictor: str
    seed: int

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        nodes = [f"{node.gpus}{node.gpu_type}" for node in self.cluster.nodes]
        jobs = [
            f"{job.id}: {job.request.gpus}m/{job.request.pods} {job.request.gpu_types or ''} "
            f"{self.durations[job.id] // SECOND} s"
            f"{'' if job.request.preemptible else ' fixed'} {job.tenant}{job.priority} {job.declared}"
            f" {job.min_run} {job.not_before // SECOND}"
            for job in self.jobs
        ]
        how = (self.placement, self.relax_s, self.predictor, self.seed)
        tree = self.cluster.queues
        return f"Case({nodes}, {tree and tree.queues}, {how}, {jobs}, {self.script})"


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """One to four nodes, equal or not, with or without types."""
    sizes = draw(st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=4))
    kinds = draw(st.sampled_from((("",), ("A",), ("A", "B"))))
    nodes = tuple(Node(f"n{index}", gpus, kinds[index % len(kinds)]) for index, gpus in enumerate(sizes))
    return Cluster(nodes, queues=draw(st.one_of(st.none(), trees(sum(sizes)))))


@st.composite
def trees(draw: st.DrawFn, gpus: int) -> QueueTree:
    """Queues for the three tenants, two of them in a group or not; none has a limit."""
    group = draw(st.booleans())
    queues = [Queue("group", weight=draw(st.sampled_from((1, 2))))] if group else []
    for name in "abc":
        queues.append(
            Queue(
                name,
                "group" if group and name != "c" else None,
                guaranteed=draw(st.integers(0, gpus)) * 1000,
                weight=draw(st.sampled_from((0, 1, 1, 3))),
                priority=draw(st.sampled_from((0, 0, 1))),
                reclaim=draw(st.sampled_from(("quota", "fair-share", "none"))),
            )
        )
    return QueueTree(tuple(queues))


@st.composite
def requests(draw: st.DrawFn, cluster: Cluster) -> Request:
    """Small and large gangs, fractions, types, some not preemptible."""
    whole = st.integers(1, cluster.gpus).map(lambda gpus: 1000 * gpus)
    gpus = draw(st.one_of(whole, whole, whole, st.sampled_from((250, 500, 750, 1500))))
    kinds = sorted({node.gpu_type for node in cluster.nodes} - {""})
    types = draw(st.sampled_from((*((kind,) for kind in kinds), (), ())))
    pods = draw(st.sampled_from((None, None, 1, 2, 3, 4)))
    if pods is not None:
        size = draw(st.sampled_from((500, 1000, 1000, 1500, 2000)))
        gpus = pods * size
    return Request(gpus, types, preemptible=draw(st.integers(0, 5)) > 0, pods=pods)


@st.composite
def cases(draw: st.DrawFn, *, with_pool: bool = True) -> Case:
    """A cluster, jobs that fit it, and a script of what happens to them."""
    cluster = draw(clusters())
    placement = draw(st.sampled_from(("pool", "pack", "pack", "spread") if with_pool else ("pack", "spread")))
    if placement == "pool":
        cluster = cluster.as_pool()
    relax_s = draw(st.sampled_from((None, None, 15.0)))
    places = create("fifo", placement=placement).placement
    jobs: list[Job] = []
    durations: dict[str, int] = {}
    for _ in range(draw(st.integers(1, 14))):
        request = draw(requests(cluster))
        if places.find(capacity_of(cluster), request, relaxed=relax_s is not None) is None:
            continue
        name = f"j{len(jobs)}"
        durations[name] = draw(st.integers(1, 50)) * SECOND
        declared = draw(st.sampled_from((None, durations[name] * 2, 10 * SECOND)))
        tenant, priority = draw(st.sampled_from("abc")), draw(st.integers(0, 2))
        min_run = draw(st.sampled_from((None, None, None, 0, 9 * SECOND)))
        not_before = draw(st.sampled_from((0, 0, 0, 15 * SECOND)))
        jobs.append(
            Job(
                name,
                len(jobs),
                0,
                request,
                tenant=tenant,
                priority=priority,
                declared=declared,
                user=tenant,
                min_run=min_run,
                not_before=not_before,
            )
        )
    kinds = st.sampled_from(
        ("submit",) * 4 + ("answer",) * 4 + ("fail", "lose", "cancel", "down", "drain", "up")
    )
    script = draw(st.lists(st.tuples(st.sampled_from((0, 0, 1, 3, 10)), kinds), max_size=40))
    predictor = draw(st.sampled_from(("oracle", "history", "declared", "noisy:0.5")))
    return Case(cluster, placement, relax_s, jobs, durations, script, predictor, draw(st.integers(0, 999)))


def world_of(case: Case, specification: str) -> World:
    policy = create(specification, placement=case.placement, relax_s=case.relax_s)
    predictor = make_predictor(case.predictor, lambda job: case.durations[job.id], seed=case.seed)
    return World(case.cluster, policy, predictor, seed=case.seed)


def play(world: World, case: Case) -> None:
    """Carry out the script, then let everything come to its end."""
    rng = random.Random(case.seed)
    todo = list(reversed(case.jobs))
    for gap, kind in case.script:
        world.advance(world.now + gap * SECOND)
        step(world, kind, rng, todo, case)
    while todo:
        submit(world, todo)
    world.settle(rng, case.durations, 8 * SECOND)


def submit(world: World, todo: list[Job]) -> None:
    """The next job arrives now."""
    job = todo.pop()
    arrived = Job(
        job.id,
        job.sequence,
        world.now,
        job.request,
        job.tenant,
        job.user,
        job.priority,
        job.declared,
        min_run=job.min_run,
        not_before=job.not_before,
    )
    world.submit(arrived)


def step(world: World, kind: str, rng: random.Random, todo: list[Job], case: Case) -> None:
    """One line of the script; nothing happens if there is nobody whom it could happen to."""
    if kind == "submit" and todo:
        submit(world, todo)
    elif kind == "answer" and (names := world.in_state("starting", "stopping", "killed", "running")):
        world._answer(rng.choice(names), case.durations)
    elif kind == "fail" and (names := world.in_state("starting", "running", "stopping")):
        world.tell(Failed(rng.choice(names), "its own fault"))
    elif kind == "lose" and (names := world.in_state("starting", "running", "stopping", "killed")):
        name = rng.choice(names)
        world.tell(Lost(name, rng.randint(0, world.progress(name)), "no answer"))
    elif kind == "cancel" and (names := sorted({*world.waiting, *world.in_state("starting", "running")})):
        world.tell(Cancelled(rng.choice(names)))
    elif kind == "down" and not case.cluster.pooled and (up := up_nodes(world)):
        world.node_down(rng.choice(up), at_once=rng.random() < 0.7)
    elif kind == "drain" and not case.cluster.pooled and (up := up_nodes(world)):
        world.drain(rng.choice(up))
    elif kind == "up" and world.down:
        world.node_up(min(world.down))


def up_nodes(world: World) -> list[int]:
    return [node for node in range(len(world.cluster.nodes)) if node not in world.down]


@pytest.mark.parametrize("specification", SPECIFICATIONS)
@settings(max_examples=30)
@given(case=cases())
def test_no_job_is_lost_and_no_gpu_is_used_twice(specification: str, case: Case) -> None:
    world = world_of(case, specification)
    play(world, case)
    assert set(world.ended) == {job.id for job in case.jobs}


@pytest.mark.parametrize("specification", SPECIFICATIONS)
@settings(max_examples=10)
@given(case=cases())
def test_a_recorded_log_gives_the_same_actions(specification: str, case: Case) -> None:
    world = world_of(case, specification)
    play(world, case)
    fresh = world_of(case, specification).engine
    assert replay(fresh, world.log) == world.answers


class BrokenError(Exception):
    """What a policy of these tests raises half-way."""


class Breaking:
    """A view that raises at the n-th step of a plan."""

    def __init__(self, view: Any, steps: int) -> None:
        self._view = view
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def _step(self) -> None:
        if not self._steps:
            raise BrokenError
        self._steps -= 1

    def start(self, job: Any, allocation: Any) -> None:
        self._step()
        self._view.start(job, allocation)

    def preempt(self, job: Any) -> None:
        self._step()
        self._view.preempt(job)


def dump(engine: Engine) -> dict[str, object]:
    """The state as far as a later decision could tell one from another."""
    state = engine.state
    capacity = state.capacity
    jobs = {
        name: (
            job.phase,
            job.allocation,
            job.pending_since,
            job.running_since,
            job.started_at,
            job.protected_until,
            job.time_run,
            job.progress,
            job.attempts,
            job.preemptions,
            job.version,
            job.pending_key if job.phase is Phase.PENDING else job.running_key,
        )
        for name, job in state.jobs.items()
    }
    queues = {
        (members.request, members.tenant, members.relaxed): [job.job.id for job in members.ordered()]
        for members in state.queued
    }
    return {
        "jobs": jobs,
        "queues": {name: queue for name, queue in queues.items() if queue},
        "running": set(state.running),
        "holders": set(state.holders),
        "order": [job.job.id for _, job in state.order.entries] if state.order else None,
        "on nodes": [set(names) for names in state.by_node],
        "allocated": {tenant: milli for tenant, milli in state.allocated.items() if milli},
        "free": (capacity.free_milli, list(capacity.free), list(capacity.with_free), capacity.whole),
        "nominated": set(engine._nominated),
    }


@pytest.mark.parametrize("specification", SPECIFICATIONS)
@settings(max_examples=20)
@given(case=cases(), whole=st.integers(0, 6), steps=st.integers(0, 3))
def test_a_plan_that_fails_half_way_leaves_no_trace(
    specification: str, case: Case, whole: int, steps: int
) -> None:
    world = world_of(case, specification)
    plan = world.policy.plan
    before: list[dict[str, object]] = []
    left = whole

    def breaking(view: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            plan(view)
        else:
            before.append(dump(world.engine))
            plan(Breaking(view, steps))
            before.pop()

    world.policy.plan = breaking  # type: ignore[method-assign]
    try:
        play(world, case)
    except PolicyError as error:
        assert isinstance(error.__cause__, BrokenError)
        assert dump(world.engine) == before.pop()
        check(world.engine.state, world.engine._nominated, world.engine.now)
