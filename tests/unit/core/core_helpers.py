"""A policy that does what a test tells it, and short ways to make jobs and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainmaster.core.engine import Engine
from trainmaster.model.action import Action
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import Event, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView, JobView, Ordering
from trainmaster.model.units import SECOND
from trainmaster.policies.parts.ordering import Order
from trainmaster.predict import Oracle

Step = Callable[[ClusterView], None]


class Told:
    """A policy that takes the steps of the next decision from a list; does nothing when it is empty."""

    name = "told"
    by_tenant = False

    def __init__(
        self, *, ordering: Ordering | None = None, relax: int | None = None, min_run: int = 0, round: int = 0
    ) -> None:
        self.ordering: Ordering = ordering or Order()
        self.relax = relax
        self.min_run = min_run
        self.round = round
        self.steps: list[Step] = []
        self.asked: list[int] = []

    def plan(self, view: ClusterView) -> None:
        self.asked.append(view.now)
        if self.steps:
            self.steps.pop(0)(view)


def job(name: str, gpus: float = 1, *, submit: int = 0, sequence: int = 0, **asked: object) -> Job:
    """A job of so many GPUs."""
    return Job(name, sequence, submit, Request(round(gpus * 1000), **asked))  # type: ignore[arg-type]


def gpus(node: int, devices: int) -> Allocation:
    """Whole devices of one node."""
    return Allocation.of([Share(node, devices, devices.bit_count() * 1000)])


def engine_of(policy: Told, *nodes: int, duration_s: int = 100) -> Engine:
    """An engine with so many GPUs on each node, that checks itself."""
    from trainmaster.model.cluster import Node

    cluster = Cluster(tuple(Node(f"n{index}", size) for index, size in enumerate(nodes)))
    return Engine(cluster, policy, Oracle(lambda job: duration_s * SECOND), validate=True)


def find(view: ClusterView, name: str) -> JobView:
    """A job of the view, wherever it is."""
    return next(job for job in everybody(view) if job.job.id == name)


def everybody(view: ClusterView) -> Iterator[JobView]:
    for members in view.pending_classes:
        yield from members
    for node in range(len(view.cluster.nodes)):
        yield from view.on_node(node)


def starts(name: str, allocation: Allocation) -> Step:
    """A step that starts a job."""
    return lambda view: view.start(find(view, name), allocation)


def stops(name: str) -> Step:
    """A step that stops a job."""
    return lambda view: view.preempt(find(view, name))


def both(*steps: Step) -> Step:
    """Several steps in one decision."""

    def take(view: ClusterView) -> None:
        for step in steps:
            step(view)

    return take


def run_at_once(engine: Engine, policy: Told, jobs: list[tuple[Job, Allocation]]) -> list[Action]:
    """Submit jobs at instant 0 and start each."""
    from trainmaster.model.event import Started

    policy.steps.append(both(*(starts(job.id, allocation) for job, allocation in jobs)))
    events: list[Event] = [Submitted(job) for job, _ in jobs]
    actions = engine.handle(0, events)
    engine.handle(0, [Started(job.id) for job, _ in jobs])
    return actions
