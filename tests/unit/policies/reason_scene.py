"""An engine in which jobs start at once, asked why others wait."""

from __future__ import annotations

from typing import Any

from trainmaster.core.engine import Engine
from trainmaster.model.action import Start
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Event, Started, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.reason import Level, Reason
from trainmaster.model.units import SECOND, to_milli
from trainmaster.policies.base import Policy
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

RUNS = 100
"""Seconds that every job is expected to run, unless it declares something."""


class Scene:
    """An engine whose jobs start at once and end when they are told to."""

    def __init__(
        self, cluster: Cluster, policy: str | type[Policy] = "fifo(backfill=greedy)", **how: Any
    ) -> None:
        made = create(policy, **how)
        placed = cluster.as_pool() if how.get("placement") == "pool" else cluster
        predictor = make_predictor("oracle", lambda job: job.declared or RUNS * SECOND)
        self.engine = Engine(placed, made, predictor, validate=True)
        self.count = 0

    def job(self, name: str, gpus: float = 1, at: float = 0, **more: Any) -> None:
        """A job is submitted; what is asked beyond GPUs may be a field of `Job` or `Request`."""
        asked = {key: more.pop(key) for key in (*Request.__dataclass_fields__,) if key in more}
        request = Request(to_milli(gpus), **asked)
        now = round(at * SECOND)
        self.tell(at, Submitted(Job(name, self.count, now, request, **more)))
        self.count += 1

    def tell(self, at: float, *events: Event) -> None:
        now = round(at * SECOND)
        actions = self.engine.handle(now, events)
        started = [Started(action.job_id) for action in actions if isinstance(action, Start)]
        if started:
            self.engine.handle(now, started)

    def why(self, name: str) -> Reason:
        return self.engine.explain(name)

    def says(self, name: str, level: Level, sentence: str) -> Reason:
        """The reason of a job, which must be this."""
        reason = self.why(name)
        assert (reason.level, reason.sentence) == (level, sentence)
        return reason


def equal(nodes: int, gpus: int = 8, **more: Any) -> Cluster:
    return Cluster(tuple(Node(f"n{number}", gpus) for number in range(nodes)), **more)


HAPPENINGS = ("jobs_end", "nodes_return", "job_withdrawn")


def helps(reason: Reason) -> dict[str, str]:
    """What the job could ask instead."""
    return {hint.change: hint.sentence for hint in reason.hints if hint.change not in HAPPENINGS}


def happening(reason: Reason) -> list[str]:
    """What could happen to others."""
    return [hint.sentence for hint in reason.hints if hint.change in HAPPENINGS]
