"""A random executor that drives the engine and believes nothing.

It keeps its own account of which job sits on which device, from the actions alone, and
checks every action against it. Who inherits or uses it decides when which outcome comes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from trainmaster.core.engine import Engine
from trainmaster.model.action import Action, Kill, Start, Stop, Wake
from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Lost,
    NodeDown,
    NodeDrained,
    NodeUp,
    Started,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView, Phase, Predictor
from trainmaster.model.units import GPU
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.backfill import Greedy
from trainmaster.policies.parts.greedy import GreedyWalk
from trainmaster.policies.parts.preemption import Evict

EXTERNAL = (Submitted, Finished, Failed, Lost, NodeDown, NodeDrained, NodeUp, Cancelled)
"""Events that nobody asked for. Between two of them, or of the instants at which a running job's
key changes (timers of jobs), decisions must come to rest: no job is stopped twice."""

HOLDING = (Phase.NOMINATED, Phase.STARTING, Phase.RUNNING)


@dataclass
class Process:
    """A job that holds GPUs, as the executor sees it."""

    job: Job
    allocation: Allocation
    state: str  # starting, running, stopping or killed
    since: int
    done: int


class World:
    """An engine, an executor and the checks of every action.

    Args:
        cluster, policy, predictor: as for the engine.
    """

    def __init__(self, cluster: Cluster, policy: Policy, predictor: Predictor, *, seed: int = 0) -> None:
        self.cluster = cluster
        self.policy = policy
        self.engine = Engine(cluster, policy, predictor, seed=seed, validate=True)
        self.now = 0
        self.log: list[tuple[int, list[Event]]] = []
        self.answers: list[list[Action]] = []
        self.jobs: dict[str, Job] = {}
        self.waiting: dict[str, int] = {}  # job: work done, ns
        self.processes: dict[str, Process] = {}
        self.ended: dict[str, str] = {}
        self.down: set[int] = set()
        self.stops = 0
        self.starts = 0
        self._timers: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._stopped_at_rest: set[str] = set()
        self._promised_before: set[str] = set()
        self._plan, policy.plan = policy.plan, self._watched_plan  # type: ignore[method-assign]

    # -- what happens -----------------------------------------------------------------------

    def submit(self, *jobs: Job) -> None:
        """New jobs, now."""
        self.tell(*(Submitted(job) for job in jobs))

    def advance(self, to: int) -> None:
        """Let time pass, timers included."""
        while self._timers and self._timers[0][0] <= to:
            at = self._timers[0][0]
            due: list[Event] = []
            while self._timers and self._timers[0][0] == at:
                due.append(heappop(self._timers)[2])
            self.now = max(self.now, at)
            self.tell(*due)
        self.now = max(self.now, to)

    def next_timer(self) -> int | None:
        """When the next timer is due."""
        return self._timers[0][0] if self._timers else None

    def in_state(self, *states: str) -> list[str]:
        """Jobs whose process is in one of these states, by name."""
        return sorted(name for name, process in self.processes.items() if process.state in states)

    def progress(self, name: str) -> int:
        """Work that a job has done, ns."""
        if name in self.waiting:
            return self.waiting[name]
        process = self.processes[name]
        return process.done + (self.now - process.since if process.state == "running" else 0)

    def node_down(self, node: int, *, at_once: bool = True) -> None:
        """A node fails; its jobs are reported lost at once or later."""
        lost = [n for n, p in sorted(self.processes.items()) if node in p.allocation.nodes]
        self.down.add(node)
        self.tell(NodeDown(node), *(Lost(name, 0, "node failure") for name in lost if at_once))

    def drain(self, node: int) -> None:
        """A node takes no new jobs; those on it run on."""
        self.down.add(node)
        self.tell(NodeDrained(node))

    def node_up(self, node: int) -> None:
        """A node is back."""
        self.down.discard(node)
        self.tell(NodeUp(node))

    def tell(self, *events: Event) -> list[Action]:
        """Hand the events of this instant to the engine, check and carry out its actions."""
        batch = sorted(events, key=lambda event: event.rank)
        for event in batch:
            self._happen(event)
            if isinstance(event, EXTERNAL) or (isinstance(event, Timer) and event.job_id is not None):
                self._stopped_at_rest.clear()
        actions = self.engine.handle(self.now, batch)
        self.log.append((self.now, batch))
        self.answers.append(list(actions))
        for action in actions:
            self._carry_out(action)
        self._check_evictions(actions)
        self._check_occupation()
        self._check_nobody_waits_in_vain({event.job.id for event in batch if isinstance(event, Submitted)})
        return actions

    # -- the executor's own account -----------------------------------------------------------

    def _happen(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self.jobs[event.job.id] = event.job
            self.waiting[event.job.id] = 0
        elif isinstance(event, Started):
            process = self.processes[event.job_id]
            if process.state == "starting":
                process.state, process.since = "running", self.now
        elif isinstance(event, Stopped):
            process = self.processes.pop(event.job_id)
            if process.state == "killed":
                self.ended[event.job_id] = "cancelled"
            else:
                self.waiting[event.job_id] = process.done
        elif isinstance(event, Finished | Failed):
            del self.processes[event.job_id]
            self.ended[event.job_id] = type(event).__name__.lower()
        elif isinstance(event, Lost):
            process = self.processes.pop(event.job_id)
            if process.state == "killed":
                self.ended[event.job_id] = "cancelled"
            else:
                self.waiting[event.job_id] = event.kept
        elif isinstance(event, Cancelled) and event.job_id in self.waiting:
            del self.waiting[event.job_id]
            self.ended[event.job_id] = "cancelled"

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Start):
            self.starts += 1
            job = self.jobs[action.job_id]
            assert action.job_id in self.waiting, f"{action} although it is not waiting"
            self._check_allocation(job, action.allocation)
            done = self.waiting.pop(action.job_id)
            self.processes[job.id] = Process(job, action.allocation, "starting", self.now, done)
        elif isinstance(action, Stop):
            self.stops += 1
            job_id = action.job_id
            process = self.processes[job_id]
            assert process.state == "running", f"{action} although it is {process.state}"
            assert process.job.request.preemptible, f"{action} although it is not preemptible"
            assert self.now - process.since >= self._min_run(process.job), (
                f"{action} within its minimum run time"
            )
            # A greedy walk doesn't weigh jobs that are still stopping; they can displace others afterwards.
            again = job_id in self._stopped_at_rest and not isinstance(self.policy.walk, GreedyWalk)
            assert not again, f"{action} again, although nothing happened"
            self._stopped_at_rest.add(job_id)
            process.done += self.now - process.since
            process.state = "stopping"
        elif isinstance(action, Kill):
            self.processes[action.job_id].state = "killed"
        elif isinstance(action, Wake):
            assert action.at >= self.now, "a timer in the past"
            self._count += 1
            heappush(self._timers, (action.at, self._count, Timer(action.job_id, action.version)))

    def _check_allocation(self, job: Job, allocation: Allocation) -> None:
        assert allocation.milli == job.request.gpus == sum(share.milli for share in allocation.shares)
        if self.cluster.pooled:
            return
        for node, devices, milli in allocation.shares:
            assert node not in self.down, "starts on a node that is down"
            assert devices < 1 << self.cluster.nodes[node].gpus
            assert devices.bit_count() * GPU == milli if milli >= GPU else devices.bit_count() == 1
            kind = self.cluster.nodes[node].gpu_type
            assert not job.request.gpu_types or not kind or kind in job.request.gpu_types, "wrong GPU type"

    def _check_occupation(self) -> None:
        """No device holds more than one GPU's worth of processes, stopping ones included."""
        if self.cluster.pooled:
            assert sum(p.allocation.milli for p in self.processes.values()) <= self.cluster.gpus * GPU
            return
        used: dict[tuple[int, int], int] = {}
        for process in self.processes.values():
            for node, devices, milli in process.allocation.shares:
                for device in bits(devices):
                    used[node, device] = used.get((node, device), 0) + min(milli, GPU)
        assert all(milli <= GPU for milli in used.values()), f"a device is used twice: {used}"

    def _watched_plan(self, view: ClusterView) -> None:
        self._promised_before = self._promised()
        self._plan(view)

    def _promised(self) -> set[str]:
        """Jobs that hold GPUs or have been promised some, and are not stopping."""
        return {name for name, job in self.engine.state.jobs.items() if job.phase in HOLDING}

    def _check_evictions(self, actions: Iterable[Action]) -> None:
        """Every victim of this decision gives GPUs to a job that was promised them in it."""
        victims = [self.processes[a.job_id].allocation for a in actions if isinstance(a, Stop)]
        # A gang of 1.5 GPUs may free two whole ones, which the choice of victims doesn't know.
        if not victims or any(victim.milli > GPU and victim.milli % GPU for victim in victims):
            return
        jobs = self.engine.state.jobs
        promised = [
            allocation
            for name in self._promised() - self._promised_before
            if (allocation := jobs[name].allocation) is not None
        ]
        assert promised, "an eviction without a start"
        if self.cluster.pooled:
            taken = sum(allocation.milli for allocation in promised)
            given = sum(allocation.milli for allocation in victims)
            idle = self.engine.state.capacity.free_milli + taken - given
            for victim in victims:
                assert taken > idle + given - victim.milli, "a superfluous victim"
            return
        for victim in victims:
            assert any(
                mine.node == other.node and mine.devices & other.devices
                for mine in victim.shares
                for allocation in promised
                for other in allocation.shares
            ), "a victim whose GPUs nobody takes"

    def _check_nobody_waits_in_vain(self, new: set[str]) -> None:
        """No waiting job fits; under `Evict`, no new one could displace weaker jobs on one node."""
        walk, ordering = self.policy.walk, self.policy.ordering
        if self.policy.round or not isinstance(walk, Greedy | Evict | GreedyWalk):
            return
        capacity = self.engine.state.capacity
        view = self.engine._view
        ordering.refresh(view)
        for members in view.pending_classes:
            job = members.head()
            assert job is not None
            room = self.policy.placement.find(capacity, members.request, relaxed=members.relaxed)
            assert room is None, f"{job} waits although there is room: {room}"
            if isinstance(walk, Evict) and (ordering.stable or job.job.id in new):
                self._check_no_node_could_be_freed(members.request, ordering.challenge(job, self.now))

    def _min_run(self, job: Job) -> int:
        return self.policy.min_run if job.min_run is None else job.min_run

    def _check_no_node_could_be_freed(self, request: Request, challenge: int) -> None:
        capacity, ordering = self.engine.state.capacity, self.policy.ordering
        need = -(-request.pod // GPU)
        room = 0
        for node in bits(capacity.eligible(request)):
            free = capacity.free_on(node)
            for job in self.engine._view.on_node(node):
                process = self.processes.get(job.job.id)
                if process is None or process.state != "running" or not job.job.request.preemptible:
                    continue
                past_minimum = self.now - process.since >= self._min_run(job.job)
                key = job.running_key if ordering.stable else ordering.running_key(job, self.now)
                if past_minimum and key > challenge:
                    free += sum(
                        share.milli // GPU for share in process.allocation.shares if share.node == node
                    )
            room += free // need
        assert room < (request.pods or 1), f"nobody was stopped for {request}"

    # -- to the end ---------------------------------------------------------------------------

    def settle(self, rng: random.Random, duration: dict[str, int], most_delay: int) -> None:
        """Answer everything that was asked, in random order after random delays, and let
        every job run to its end; all nodes come back first."""
        for node in sorted(self.down):
            self.node_up(node)
        outcomes: list[tuple[int, int, str]] = []
        known: dict[str, tuple[str, int]] = {}
        steps = 0
        while self.waiting or self.processes:
            steps += 1
            assert steps < 20_000, "decisions never come to rest"
            for name in sorted(self.processes):
                process = self.processes[name]
                if known.get(name) == (process.state, process.since):
                    continue
                known[name] = (process.state, process.since)
                delay = rng.randint(0, most_delay)
                if process.state == "running":
                    delay = max(0, duration[name] - self.progress(name))
                heappush(outcomes, (self.now + delay, rng.getrandbits(20), name))
            timer = self.next_timer()
            if outcomes and (timer is None or outcomes[0][0] <= timer):
                at, _, name = heappop(outcomes)
                self.now = max(self.now, at)
                self._answer(name, duration)
                if name not in self.processes:
                    known.pop(name, None)
            else:
                assert timer is not None, f"nothing will happen, but {sorted(self.waiting)} wait"
                self.advance(timer)
        self.check_empty()

    def _answer(self, name: str, duration: dict[str, int]) -> None:
        process = self.processes.get(name)
        if process is None:
            return
        if process.state == "starting":
            self.tell(Started(name))
        elif process.state == "running":
            if self.progress(name) >= duration[name]:
                self.tell(Finished(name))
        elif process.state == "killed":
            self.tell(Stopped(name))
        else:
            self.tell(CheckpointWritten(name, process.done), Stopped(name))

    def check_empty(self) -> None:
        """Nothing is left behind."""
        state = self.engine.state
        assert not (state.jobs or state.running or state.holders), "jobs are left in the state"
        assert state.capacity.free_milli == self.cluster.gpus * GPU, "GPUs are left in use"
        assert not any(state.allocated.values())
        assert set(self.ended) == set(self.jobs), "a job was lost"
