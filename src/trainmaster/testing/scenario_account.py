"""Who sits where and who was stopped, from events and actions alone: it believes nothing.

It also checks what needs no more than that: I1, no GPU holds more than one GPU's worth of jobs
(those that are stopping included), and I2, a gang holds nothing or at least its minimum.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trainmaster.model.action import Action, Kill, Start, Stop
from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import TrainmasterError
from trainmaster.model.event import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Lost,
    NodeDown,
    NodeUp,
    Started,
    Stopped,
    Submitted,
)
from trainmaster.model.units import GPU, to_gpus
from trainmaster.testing.scenario_model import GROUPS, HOLDING, PARTLY, CaseJob


class InvariantError(TrainmasterError):
    """One of the nine invariants does not hold."""


class Account:
    """The cluster as its executor sees it.

    Args:
        cluster: as the engine knows it.
        jobs: of the case, by name.

    Attributes:
        state: by job; see `scenario_model.STATES`.
        held: the GPUs of jobs that hold some.
        evictions: by job, how often the scheduler stopped it.
        evicted: the jobs in the order of the evictions.
        first_start, ended_at: by job, ns.
        starts: the jobs in the order of their first starts.
        down: nodes that are down.
    """

    def __init__(self, cluster: Cluster, jobs: Mapping[str, CaseJob]) -> None:
        self.cluster = cluster
        self.state: dict[str, str] = dict.fromkeys(jobs, "unsubmitted")
        self.held: dict[str, Allocation] = {}
        self.evictions: dict[str, int] = dict.fromkeys(jobs, 0)
        self.evicted: list[str] = []
        self.first_start: dict[str, int] = {}
        self.starts: list[str] = []
        self.ended_at: dict[str, int] = {}
        self.down: set[int] = set()
        self._jobs = jobs
        self._withdrawn: set[str] = set()

    # -- what happens -----------------------------------------------------------------------------

    def happen(self, now: int, events: Sequence[Event]) -> None:
        """Write down the events of a batch."""
        for event in events:
            if isinstance(event, Submitted):
                self.state[event.job.id] = "pending"
            elif isinstance(event, Started):
                if self.state[event.job_id] == "starting":
                    self.state[event.job_id] = "running"
            elif isinstance(event, Finished | Failed):
                self._end(event.job_id, now, type(event).__name__.lower())
            elif isinstance(event, Stopped | Lost):
                del self.held[event.job_id]
                if event.job_id in self._withdrawn:
                    self._end(event.job_id, now, "cancelled")
                else:
                    self.state[event.job_id] = "pending"
            elif isinstance(event, Cancelled):
                self._withdrawn.add(event.job_id)
                if event.job_id not in self.held:
                    self._end(event.job_id, now, "cancelled")
            elif isinstance(event, NodeDown):
                self.down.add(event.node)
            elif isinstance(event, NodeUp):
                self.down.discard(event.node)

    def carry_out(self, now: int, actions: Sequence[Action]) -> None:
        """Write down what is asked for.

        Raises:
            InvariantError: I1 or I2.
        """
        for action in actions:
            if isinstance(action, Start):
                self._start(now, action.job_id, action.allocation)
            elif isinstance(action, Stop):
                self.state[action.job_id] = "stopping"
                self.evictions[action.job_id] += 1
                self.evicted.append(action.job_id)
            elif isinstance(action, Kill):
                self.state[action.job_id] = "stopping"
        self._check_gpus()

    def _start(self, now: int, job: str, allocation: Allocation) -> None:
        if self.state[job] != "pending":
            raise InvariantError(f"I2: {job} is started although it is {self.state[job]}")
        held = sum(share.milli for share in allocation.shares)
        asked = self._jobs[job]
        if held < asked.least:
            raise InvariantError(
                f"I2: {job} is started on {to_gpus(held)} GPUs, its gang needs {to_gpus(asked.least)}"
            )
        if asked.pods is not None and not self.cluster.pooled:
            for node, _, milli in allocation.shares:
                if milli % asked.pods[1]:
                    raise InvariantError(
                        f"I2: a pod of {job} spans {self.cluster.nodes[node].name} and others"
                    )
        for node in allocation.nodes:
            if node in self.down:
                raise InvariantError(
                    f"I1: {job} is started on {self.cluster.nodes[node].name}, which is down"
                )
        self.held[job] = allocation
        self.state[job] = "starting"
        if job not in self.first_start:
            self.first_start[job] = now
            self.starts.append(job)

    def _end(self, job: str, now: int, state: str) -> None:
        self.held.pop(job, None)
        self.state[job] = state
        self.ended_at[job] = now

    def _check_gpus(self) -> None:
        if self.cluster.pooled:
            used = sum(self.gpus(job) for job in self.held)
            if used > self.cluster.gpus * GPU:
                raise InvariantError(f"I1: {to_gpus(used)} of {self.cluster.gpus} GPUs are in use")
            return
        devices: dict[tuple[int, int], int] = {}
        for allocation in self.held.values():
            for node, mask, milli in allocation.shares:
                count = mask.bit_count()
                for device in bits(mask):
                    devices[node, device] = devices.get((node, device), 0) + min(GPU, milli // count)
        for (node, device), milli in devices.items():
            name = self.cluster.nodes[node].name
            if device >= self.cluster.nodes[node].gpus:
                raise InvariantError(f"I1: {name} has no GPU {device}, and it is used")
            if milli > GPU:
                raise InvariantError(f"I1: GPU {device} of {name} is used {milli} / {GPU}")

    # -- what is asked --------------------------------------------------------------------------

    def gpus(self, job: str) -> int:
        """Milli-GPUs that a job holds."""
        return sum(share.milli for share in self.held[job].shares) if job in self.held else 0

    def nodes(self, job: str) -> set[str]:
        """Names of the nodes that a job sits on."""
        held = self.held.get(job)
        return set() if held is None else {self.cluster.nodes[node].name for node in held.nodes}

    def free(self, node: str | None = None) -> int:
        """Milli-GPUs that nobody holds on nodes that are up, of one node or of all."""
        wanted = {index for index, found in enumerate(self.cluster.nodes) if node in (None, found.name)}
        wanted -= self.down
        room = sum(self.cluster.nodes[index].gpus for index in wanted) * GPU
        held = self.held.values()
        return room - sum(share.milli for taken in held for share in taken.shares if share.node in wanted)

    def is_in(self, job: str, word: str) -> bool:
        """Whether a job is in a state, by any of the words for states."""
        if word == PARTLY:
            return 0 < self.gpus(job) < self._jobs[job].least
        return self.state[job] in GROUPS[word]

    def count(self, jobs: Collection[str], word: str) -> int:
        """How many of the jobs are in a state."""
        return sum(self.is_in(job, word) for job in jobs)

    def waiting(self) -> list[str]:
        """Jobs that hold nothing and have not ended."""
        return [job for job, state in self.state.items() if state == "pending"]

    def holding(self) -> list[str]:
        """Jobs that hold GPUs."""
        return [job for job, state in self.state.items() if state in HOLDING]
