"""A busy cluster that one row after another decides for; prints one JSON object.

Usage: busy_cluster.py NODES QUEUES JOBS STEPS

Jobs of 20 sizes and queues are submitted until so many are in the system; then, step by
step, one more comes or a running one ends, and each decision is timed. Last, 10,000 jobs
come in batches of 100.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence

from trainmaster.core.engine import Engine
from trainmaster.model.action import Action, Start, Stop
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Event, Finished, Started, Stopped, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import SECOND
from trainmaster.policies.registry import create
from trainmaster.predict import make_predictor

SIZES = (1, 1, 1, 1, 1, 2, 2, 4, 8)
BURST, BATCH = 10_000, 100


class Busy:
    """The cluster, its engine and a supply of jobs."""

    def __init__(self, nodes: int, queues: int, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.queues = queues
        share = nodes * 8 * 1000 // queues
        tree = QueueTree(
            tuple(
                Queue(f"q{i}", guaranteed=self.rng.choice((share // 2, share)), weight=1 + i % 3)
                for i in range(queues)
            )
        )
        cluster = Cluster(tuple(Node(f"n{i}", 8) for i in range(nodes)), queues=tree)
        self.engine = Engine(cluster, create("standard"), make_predictor("declared", lambda job: 0))
        self.now = 0
        self.made = 0

    def jobs(self, count: int) -> list[Event]:
        """New jobs; some queues submit much more than others."""
        rng, events = self.rng, []
        for _ in range(count):
            gpus, queue = rng.choice(SIZES), int(rng.random() ** 2 * self.queues)
            events.append(
                Submitted(
                    Job(
                        f"j{self.made}",
                        self.made,
                        self.now,
                        Request(gpus * 1000, pods=1),
                        tenant=f"q{queue}",
                        priority=rng.choice((0, 0, 0, 1)),
                        declared=rng.randint(600, 86_400) * SECOND,
                    )
                )
            )
            self.made += 1
        return list(events)

    def step(self, events: Sequence[Event]) -> tuple[float, bool]:
        """Seconds that the decision on these events took, and whether it stopped anybody."""
        self.now += SECOND
        begun = time.perf_counter()
        actions = self.engine.handle(self.now, events)
        spent = time.perf_counter() - begun
        stopped = any(isinstance(action, Stop) for action in actions)
        while actions:
            actions = self.engine.handle(self.now, answers(actions))
        return spent, stopped

    def waiting(self) -> int:
        """Jobs in the system that don't run."""
        return len(self.engine.state.jobs) - len(self.engine.state.running)


def answers(actions: Sequence[Action]) -> list[Event]:
    """What comes of actions at once."""
    stops: list[Event] = [Stopped(action.job_id) for action in actions if isinstance(action, Stop)]
    return stops + [Started(action.job_id) for action in actions if isinstance(action, Start)]


def quantile(values: list[float], part: float) -> float | None:
    return sorted(values)[int(part * len(values))] * 1000 if values else None


def main(nodes: int, queues: int, jobs: int, steps: int) -> None:
    busy = Busy(nodes, queues)
    while len(busy.engine.state.jobs) < jobs:
        busy.step(busy.jobs(20))
    facts = {"running": len(busy.engine.state.running), "pending": busy.waiting()}
    quiet: list[float] = []
    evicting: list[float] = []
    for number in range(steps):
        ended = busy.rng.choice(list(busy.engine.state.running))
        spent, stopped = busy.step(busy.jobs(1) if number % 2 else [Finished(ended)])
        (evicting if stopped else quiet).append(spent)
    begun = time.perf_counter()
    for _ in range(BURST // BATCH):
        busy.step(busy.jobs(BATCH))
    burst = time.perf_counter() - begun
    print(
        json.dumps(
            {
                **facts,
                "p50_ms": quantile(quiet, 0.5),
                "p99_ms": quantile(quiet, 0.99),
                "evicting": len(evicting),
                "evicting_p99_ms": quantile(evicting, 0.99),
                "jobs_per_s": BURST / burst,
            }
        )
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
