"""Tiresias: discretized two-dimensional Gittins index."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from trainmaster.model.ports import ClusterView, JobView
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob
from trainmaster.policies.parts.ordering import AttainedService, by_submit


class GittinsIndex(AttainedService):
    """By the Gittins index of the attained GPU-time, best first.

    The index of a job that has had service a is the largest ratio, over all next steps d,
    of P(done within d) to E[service used within d], for the services of finished jobs
    that exceeded a. It changes when a job crosses a limit; the table of indices is worked
    out anew after every `refresh_every` finished jobs, and jobs take it up when they are
    next queued or cross a limit.
    """

    def __init__(self, limits: list[int], history: int, refresh_every: int) -> None:
        super().__init__(limits)
        self._services: deque[int] = deque(maxlen=history)
        self._refresh_every = refresh_every
        self._since_refresh = 0
        # Before anything is known: least attained service first.
        self.positions = list(range(len(limits) + 1))

    def pending_key(self, job: JobView, now: int) -> int:
        """(position of the job's index, submission)."""
        level = self.level(job.attained(now) * job.job.request.gpus)
        return by_submit(self.positions[level], job)

    def finished(self, job: JobView, now: int) -> None:
        """Learn the service of a finished job."""
        self._services.append(job.attained(now) * job.job.request.gpus)
        self._since_refresh += 1
        if self._since_refresh >= self._refresh_every:
            self._since_refresh = 0
            self.positions = positions(sorted(self._services), self.limits)

    def memory(self) -> dict[str, Any]:
        """The services of finished jobs, and the table made of them."""
        return {
            "services": list(self._services),
            "since_refresh": self._since_refresh,
            "positions": self.positions,
        }

    def recall(self, memory: Mapping[str, Any], view: ClusterView, jobs: Mapping[str, JobView]) -> None:
        """Go on with these."""
        if memory:
            self._services.extend(memory["services"])
            self._since_refresh, self.positions = memory["since_refresh"], list(memory["positions"])


def positions(services: list[int], limits: list[int]) -> list[int]:
    """Position of each level in the order of falling Gittins index.

    Args:
        services: services of finished jobs, sorted.
        limits: lower ends of levels 1, 2, …; level 0 begins at 0.

    A level that no finished job exceeded comes last.

    >>> positions([10] * 9 + [1000], [20, 2000])   # after 20, a long way to go
    [0, 1, 2]
    """
    sums = [0, *accumulate(services)]
    steps = [0, *limits]
    indices = []
    for attained in steps:
        first = bisect_right(services, attained)
        alive = len(services) - first
        best = 0.0
        for end in [*limits, services[-1]]:
            if end <= attained or not alive:
                continue
            last = bisect_left(services, end + 1)
            done = last - first
            used = sums[last] - sums[first] - done * attained + (alive - done) * (end - attained)
            best = max(best, done / used)
        indices.append(best)
    order = sorted(range(len(steps)), key=lambda level: (-indices[level], level))
    result = [0] * len(steps)
    for position, level in enumerate(order):
        result[level] = position
    return result


class Gittins(Policy):
    """Jobs most likely to end soon per GPU-second first, judged by finished jobs."""

    name = "gittins"
    source = "Gu et al., Tiresias, NSDI'19, section 3.2 (discretized 2D-Gittins); Gittins, 1979"
    limits = "The history is that of the whole cluster; the paper also conditions on nothing else."
    preemptive = True
    knobs = (
        Knob(
            "first_limit",
            450.0,
            "first limit of attained service, GPU-seconds; each further one doubles",
            low=1,
            high=1e15,
        ),
        Knob("levels", 14, "number of limits", low=1, high=40),
        Knob("history", 5_000, "finished jobs remembered", low=10),
        Knob("refresh_every", 200, "finished jobs between two tables", low=1),
    )

    def compose(self) -> None:
        """Set the limits."""
        first = int(self.number("first_limit") * SECOND) * GPU
        limits = [first << step for step in range(int(self.settings["levels"]))]
        self.ordering = GittinsIndex(
            limits, int(self.settings["history"]), int(self.settings["refresh_every"])
        )
