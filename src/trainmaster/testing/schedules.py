"""Small workloads, and schedules of them that are audited without asking the engine.

Used by `trainmaster.testing.policies`; use it for tests of your own policy's answers.

>>> from trainmaster.policies.fifo import Fifo
>>> case = Case.of(nodes=1, gpus_per_node=4, rows=[("a", 0, 60, 4), ("b", 1, 30, 2)])
>>> schedule = play(Fifo, case)
>>> schedule.starts, schedule.ends
({'a': 0.0, 'b': 60.0}, {'a': 60.0, 'b': 90.0})
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from types import FrameType
from typing import Any, overload

from trainmaster.core.engine import Engine
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.action import Action, Start, Stop
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import Event, NodeDown, NodeUp, Started
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, SECOND, to_milli, to_ns
from trainmaster.policies.base import Policy
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, run

__all__ = ["FREE", "Case", "Schedule", "SealedDurations", "no_hidden_inputs", "play"]

FREE = Costs(checkpoint_s=0, restore_s=0)
"""Starting and stopping take no time."""

MAX_INSTANTS = 50_000
"""No workload here needs more; a policy that wakes itself for ever is ended."""

PolicyFactory = Callable[..., Policy]
"""Makes a fresh policy; called with placement, relax_s, perhaps defaults and knobs, by name."""


@dataclass(frozen=True)
class Case:
    """A cluster and jobs for it.

    Args:
        cluster: its nodes.
        jobs: in order of submission, `jobs[i].sequence == i`.
        durations: true run times, ns, by sequence.
    """

    cluster: Cluster
    jobs: list[Job]
    durations: Sequence[int]

    @classmethod
    def of(
        cls,
        *,
        rows: Sequence[tuple[str, float, float, float]],
        nodes: int = 1,
        gpus_per_node: int = 8,
        cluster: Cluster | None = None,
        **request: Any,
    ) -> Case:
        """A case from rows (id, submit, duration, GPUs), seconds, in order of submission.

        Args:
            cluster: instead of `nodes` equal ones.
            request: other fields of every job's `Request`.
        """
        jobs = [
            Job(name, row, to_ns(submit), Request(to_milli(gpus), **request))
            for row, (name, submit, _, gpus) in enumerate(rows)
        ]
        durations = [to_ns(duration) for _, _, duration, _ in rows]
        return cls(cluster or Cluster.homogeneous(nodes, gpus_per_node), jobs, durations)

    @classmethod
    def busy(cls, seed: int, *, jobs: int = 36, cluster: Cluster | None = None, most: int = 16) -> Case:
        """Bursts of jobs of all sizes from three tenants, more than the cluster takes at once.

        Args:
            seed: of the workload.
            jobs: their number.
            cluster: four nodes of four GPUs by default.
            most: GPUs of the largest gang.
        """
        rng = random.Random(seed)
        found, durations = [], []
        at = 0.0
        for row in range(jobs):
            at += rng.choice((0.0, 0.0, 1.5, 20.0, 90.0, 400.0))
            duration = to_ns(round(min(6_000.0, max(5.0, rng.lognormvariate(5.5, 1.3))), 3))
            gpus = min(most, rng.choice((1, 1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 16)))
            found.append(
                Job(
                    id=f"job-{row}",
                    sequence=row,
                    submit=to_ns(at),
                    request=Request(gpus * GPU, preemptible=rng.random() < 0.9),
                    tenant=rng.choice(("red", "green", "blue")),
                    user=rng.choice(("ann", "bob")),
                    priority=rng.choice((0, 0, 0, 1, 2)),
                    declared=round(duration * rng.choice((0.5, 1.0, 3.0))) if rng.random() < 0.5 else None,
                )
            )
            durations.append(duration)
        return cls(cluster or Cluster.homogeneous(4, 4), found, durations)

    def changed(self, change: Callable[[Job], Job]) -> Case:
        """The same with every job changed."""
        return replace(self, jobs=[change(job) for job in self.jobs])


@dataclass
class Schedule:
    """What came of a case.

    Attributes:
        policy: the one that decided.
        ledger: closed; see `trainmaster.metrics.Ledger`.
        instants: (now, events, actions) of each instant, in order.
        decisions: how often the policy was asked.
    """

    case: Case
    policy: Policy
    ledger: Ledger = field(default_factory=Ledger)
    instants: list[tuple[int, Sequence[Event], Sequence[Action]]] = field(default_factory=list)
    decisions: int = 0

    @property
    def starts(self) -> dict[str, float]:
        """First start by job, seconds."""
        pairs = zip(self.ledger.jobs, self.ledger.first_start, strict=True)
        return {job.id: first / SECOND for job, first in pairs if first >= 0}

    @property
    def ends(self) -> dict[str, float]:
        """End by job, seconds."""
        pairs = zip(self.ledger.jobs, self.ledger.finish, strict=True)
        return {job.id: finish / SECOND for job, finish in pairs if finish >= 0}

    @property
    def stops(self) -> dict[str, int]:
        """How often each job was stopped that ever was."""
        pairs = zip(self.ledger.jobs, self.ledger.preemptions, strict=True)
        return {job.id: count for job, count in pairs if count}

    def text(self) -> str:
        """Every event and action, to compare two schedules."""
        return "\n".join(
            f"{now} {[str(event) for event in events]} {actions}" for now, events, actions in self.instants
        )

    # -- the audit ------------------------------------------------------------------------

    def audit(self) -> None:
        """Check what holds for every policy, from events and actions alone.

        Raises:
            AssertionError: names the job or the GPU.
        """
        self._audit_jobs()
        self._audit_gpus()
        self._audit_stops()

    def _audit_jobs(self) -> None:
        ledger = self.ledger
        late = [
            job.id for job, status in zip(ledger.jobs, ledger.status, strict=True) if status != "finished"
        ]
        assert len(ledger.jobs) == len(self.case.jobs) and not late, f"never finished: {', '.join(late)}"
        for row, job in enumerate(ledger.jobs):
            done = ledger.run[row] - ledger.lost[row]
            assert done == self.case.durations[row], (
                f"{job.id} ran {done} ns, needs {self.case.durations[row]}"
            )
            assert ledger.finish[row] - job.submit >= done, f"{job.id} ended before it could"

    def _audit_gpus(self) -> None:
        """No GPU is used twice, every gang is whole and sits where it may."""
        ledger, nodes = self.ledger, self.case.cluster.nodes
        changes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        holds = zip(ledger.hold_row, ledger.hold_asked, ledger.hold_left, ledger.hold_allocation, strict=True)
        for row, asked, left, allocation in holds:
            job = ledger.jobs[row]
            held = sum(share.milli for share in allocation.shares)
            assert held == job.request.gpus, f"{job.id} held {held} of {job.request.gpus} milli-GPUs"
            for node, devices, milli in allocation.shares:
                if not devices:  # a pool
                    changes.setdefault((0, -1), []).extend(((asked, milli), (left, -milli)))
                    continue
                types, found = job.request.gpu_types, nodes[node].gpu_type
                assert not types or not found or found in types, f"{job.id} ran on GPUs of type {found}"
                assert devices < 1 << nodes[node].gpus, f"{job.id} ran on a GPU that {nodes[node].name} lacks"
                for device in range(nodes[node].gpus):
                    if devices >> device & 1:
                        each = min(milli, GPU)
                        changes.setdefault((node, device), []).extend(((asked, each), (left, -each)))
        for (node, device), steps in changes.items():
            room = GPU if device >= 0 else self.case.cluster.gpus * GPU
            used = 0
            for at, step in sorted(steps):  # at one instant GPUs are given back first
                used += step
                where = f"GPU {device} of {nodes[node].name}" if device >= 0 else "the pool"
                assert used <= room, f"{where} is used {used} / {room} at {at / SECOND} s"

    def _audit_stops(self) -> None:
        """Who is stopped may be, has had its minimum run time, and gives way to somebody else."""
        jobs = {job.id: job for job in self.case.jobs}
        began: dict[str, int] = {}
        stopped: dict[str, int] = {}
        started: dict[str, int] = {}
        failures = False
        for now, events, actions in self.instants:
            failures |= any(isinstance(event, NodeDown) for event in events)
            began.update((event.job_id, now) for event in events if isinstance(event, Started))
            started.update((action.job_id, now) for action in actions if isinstance(action, Start))
            for action in actions:
                if isinstance(action, Start) and action.job_id in stopped:
                    name = action.job_id
                    since = stopped.pop(name)
                    # Who a place was made for may be lost with its node meanwhile.
                    assert failures or any(at >= since for other, at in started.items() if other != name), (
                        f"{name} was stopped for nobody at {since / SECOND} s"
                    )
                elif isinstance(action, Stop):
                    name = action.job_id
                    stopped[name] = now
                    ran = now - began[name]
                    assert jobs[name].request.preemptible, f"{name} is not preemptible and was stopped"
                    assert ran >= self.policy.min_run, f"{name} was stopped after {ran / SECOND} s"


def play(
    policy: PolicyFactory,
    case: Case,
    *,
    placement: str = "pack",
    predictor: str = "history",
    costs: Costs = FREE,
    relax_s: float | None = None,
    failures: Sequence[tuple[float, int, str]] = (),
    weights: Mapping[str, float] | None = None,
    seed: int = 0,
    durations: Sequence[int] | None = None,
    knobs: Mapping[str, object] | None = None,
) -> Schedule:
    """Simulate a case, every invariant of the engine checked at each instant, and audit the schedule.

    Args:
        policy: a `Policy` class, or what makes a fresh policy from the same arguments.
        case: cluster and jobs.
        placement, predictor, costs, relax_s, weights, seed: as for `trainmaster.simulate`.
        failures: (second, index of the node, "down" or "up").
        durations: what the simulator reads instead of the case's durations.
        knobs: of the policy.

    Raises:
        AssertionError: a job never finished, a GPU was used twice, …
        PolicyError: the policy planned something impossible.
    """
    options = Options(predictor, placement, relax_s, costs, validate=True, weights=dict(weights or {}))
    made = policy(placement=placement, relax_s=relax_s, **(knobs or {}))
    events: list[tuple[int, NodeDown | NodeUp]] = [
        (to_ns(at), NodeDown(node) if what == "down" else NodeUp(node)) for at, node, what in failures
    ]
    schedule = Schedule(case, made)

    def watch(now: int, happened: Sequence[Event], actions: Sequence[Action]) -> None:
        schedule.instants.append((now, tuple(happened), tuple(actions)))
        assert len(schedule.instants) < MAX_INSTANTS, f"no end after {MAX_INSTANTS} instants: it keeps waking"

    truths = case.durations if durations is None else durations
    setup = Setup(case.jobs, truths, case.cluster, made.title, options, seed, None, events)
    outcome = run(setup, made, watch=watch)
    schedule.ledger, schedule.decisions = outcome.ledger, outcome.figures["decisions"]
    schedule.audit()
    return schedule


class SealedDurations(Sequence[int]):
    """True run times that raise when anybody but the given modules reads them.

    Args:
        durations: ns, by the jobs' sequence.
        readers: names of the modules that may read, by default the simulated cluster's only.

    Attributes:
        reads: how often one was read.
    """

    def __init__(
        self, durations: Sequence[int], readers: Sequence[str] = ("trainmaster.sim.virtual_cluster",)
    ) -> None:
        self._durations, self._readers = durations, readers
        self.reads = 0

    def __len__(self) -> int:
        return len(self._durations)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        # The simulator reads through a function of its own; who calls that wants to know.
        reader = sys._getframe(2).f_globals["__name__"]
        assert reader in self._readers, f"{reader} reads a true duration"
        self.reads += 1
        return self._durations[index]

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("somebody reads all true durations")


@contextmanager
def no_hidden_inputs() -> Iterator[None]:
    """Fail when a clock or a global random generator is read while the engine handles an instant."""
    outer = sys.getprofile()

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and (name := _hidden_input(called)) and _within_handle(frame):
            raise AssertionError(f"{name} is read while deciding; use view.now and view.rng")

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(outer)


_GLOBAL_RANDOM: Any = random.random.__self__  # type: ignore[attr-defined]


def _hidden_input(function: Any) -> str:
    """What a built-in function reads that a policy must not; empty if nothing."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if owner is _GLOBAL_RANDOM:
        return f"the global random generator (random.{name})"
    if getattr(function, "__module__", None) == "time":
        return f"a clock (time.{name})"
    if isinstance(owner, type) and issubclass(owner, date) and name in ("now", "today", "utcnow"):
        return f"a clock ({owner.__name__}.{name})"
    return "the system's random source (os.urandom)" if name == "urandom" else ""


def _within_handle(frame: FrameType | None) -> bool:
    handle = Engine.handle.__code__
    while frame is not None:
        if frame.f_code is handle:
            return True
        frame = frame.f_back
    return False
