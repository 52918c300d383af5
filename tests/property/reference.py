"""Schedules worked out the slow and obvious way, to compare the simulator with.

Nothing here is shared with the package: no heaps, no keys, no bit masks. Time is in whole
nanoseconds; starting and stopping cost nothing. At an instant, jobs complete first, then
jobs arrive, then the queue is looked at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Task:
    """A job: arrival, work and gang, and what became of it."""

    row: int
    submit: int
    duration: int
    gpus: int
    left: int = 0
    had: int = 0
    start: int | None = None
    finish: int | None = None
    nodes: dict[int, int] = field(default_factory=dict)


class Reference:
    """One schedule.

    Args:
        nodes, per_node: the cluster; a pool is one node with all GPUs.
        policy: fifo, greedy, easy, sjf; and on one node srtf or las.
        limit: of las, GPU-nanoseconds.
    """

    def __init__(self, nodes: int, per_node: int, policy: str, *, limit: int = 0) -> None:
        self.per_node, self.policy, self.limit = per_node, policy, limit
        self.free = [per_node] * nodes
        self.now = 0
        self.waiting: list[Task] = []
        self.running: list[Task] = []

    def run(self, jobs: list[tuple[int, int, int]]) -> list[Task]:
        """Jobs as (submit, duration, gpus); returns them finished, in the order given."""
        tasks = [Task(row, *job) for row, job in enumerate(jobs)]
        future = sorted(tasks, key=lambda task: (task.submit, task.row))
        for task in tasks:
            task.left = task.duration
        while future or self.waiting or self.running:
            instants = [self.now + task.left for task in self.running]
            instants += [self.now + self.to_demotion(task) for task in self.running if self.level(task) == 0]
            if future:
                instants.append(future[0].submit)
            self.advance(min(instants))
            while future and future[0].submit == self.now:
                self.waiting.append(future.pop(0))
            self.decide()
        return tasks

    def advance(self, to: int) -> None:
        for task in list(self.running):
            task.left -= to - self.now
            task.had += to - self.now
            if task.left == 0:
                task.finish = to
                self.remove(task)
        self.now = to

    def remove(self, task: Task) -> None:
        self.running.remove(task)
        for node, gpus in task.nodes.items():
            self.free[node] += gpus
        task.nodes = {}

    def begin(self, task: Task, nodes: dict[int, int]) -> None:
        self.waiting.remove(task)
        self.running.append(task)
        task.nodes = nodes
        for node, gpus in nodes.items():
            self.free[node] -= gpus
        if task.start is None:
            task.start = self.now

    # -- policies ---------------------------------------------------------------------------

    def decide(self) -> None:
        if self.policy in ("srtf", "las"):
            self.choose_anew()
            return
        queue = sorted(self.waiting, key=self.order)
        for place, task in enumerate(queue):
            nodes = self.find(task.gpus, self.free)
            if nodes is not None:
                self.begin(task, nodes)
            elif self.policy == "fifo":
                return
            elif self.policy == "easy":
                self.backfill(task, queue[place + 1 :])
                return

    def order(self, task: Task) -> tuple[int, ...]:
        if self.policy == "sjf":
            return (task.duration, task.row)
        if self.policy == "srtf":
            return (task.left, task.row)
        if self.policy == "las":
            return (self.level(task), task.submit, task.row)
        return (task.submit, task.row)

    def choose_anew(self) -> None:
        """All jobs in order take what fits; who runs and isn't chosen stops."""
        left, chosen = self.per_node, []
        for task in sorted(self.waiting + self.running, key=self.order):
            if task.gpus <= left:
                left -= task.gpus
                chosen.append(task)
        for task in [task for task in self.running if task not in chosen]:
            self.remove(task)
            self.waiting.append(task)
        for task in [task for task in chosen if task not in self.running]:
            self.begin(task, {0: task.gpus})

    def backfill(self, head: Task, others: list[Task]) -> None:
        """What ends before the head could start, or needs GPUs that it will not need then."""
        ends = sorted({self.now + task.left for task in self.running})
        shadow = next(end for end in ends if self.find(head.gpus, self.free_at(end)) is not None)
        spare = self.free_at(shadow)
        for node, gpus in (self.find(head.gpus, spare) or {}).items():
            spare[node] -= gpus
        for task in others:
            if self.now + task.duration <= shadow:
                nodes = self.find(task.gpus, self.free)
            elif task.gpus <= self.per_node:
                both = [node for node, gpus in enumerate(spare) if gpus >= task.gpus]
                nodes = self.fullest(task.gpus, self.free, both)
            else:
                nodes = self.find(task.gpus, self.free)
                if nodes and any(gpus > spare[node] for node, gpus in nodes.items()):
                    nodes = None
            if nodes is not None:
                self.begin(task, nodes)
                if self.now + task.duration > shadow:
                    for node, gpus in nodes.items():
                        spare[node] -= gpus

    def level(self, task: Task) -> int:
        return int(self.policy != "las" or task.had * task.gpus >= self.limit)

    def to_demotion(self, task: Task) -> int:
        steps = 0 if self.limit % task.gpus == 0 else 1
        return self.limit // task.gpus + steps - task.had

    # -- room ----------------------------------------------------------------------------------

    def free_at(self, instant: int) -> list[int]:
        """Free GPUs by node once the jobs that end by then are gone."""
        free = list(self.free)
        for task in self.running:
            if self.now + task.left <= instant:
                for node, gpus in task.nodes.items():
                    free[node] += gpus
        return free

    def find(self, gpus: int, free: list[int]) -> dict[int, int] | None:
        """GPUs by node: one node, the fullest that fits, or whole ones and a remainder."""
        everywhere = list(range(len(free)))
        if gpus <= self.per_node:
            return self.fullest(gpus, free, everywhere)
        empty = [node for node in everywhere if free[node] == self.per_node]
        whole, rest = divmod(gpus, self.per_node)
        if len(empty) < whole:
            return None
        found = dict.fromkeys(empty[:whole], self.per_node)
        if rest:
            last = self.fullest(rest, free, [node for node in everywhere if node not in found])
            return None if last is None else {**found, **last}
        return found

    def fullest(self, gpus: int, free: list[int], nodes: list[int]) -> dict[int, int] | None:
        fitting = [node for node in nodes if free[node] >= gpus]
        if not fitting:
            return None
        return {min(fitting, key=lambda node: (free[node], node)): gpus}
