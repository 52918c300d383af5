"""The ports: what a policy sees, and what the engine needs of a policy.

The engine (`core`) implements the views and is handed a `Policy`; a policy never
imports the engine. Keys are integers whose low `TIE_BITS` bits hold the job's
sequence number, so that every comparison is total and one `<` decides it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.job import Job, Request

if TYPE_CHECKING:
    from trainmaster.model.reason import Glance, Proposal, Reason

TIE_BITS: Final = 32
"""Low bits of a key that hold the tie-break (the job's sequence number)."""

ANYBODY: Final = -1
"""A challenge below every running key."""


class Phase(Enum):
    """Where a job stands. Starting and stopping take time, so they are states."""

    PENDING = "pending"
    NOMINATED = "nominated"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Estimate(NamedTuple):
    """A predicted total run time on the GPUs asked for, at reference speed.

    Args:
        total: median, nanoseconds.
        spread: standard deviation of its logarithm; 0 = certain.
    """

    total: int
    spread: float = 0.0


class Predictor(Protocol):
    """Predicts run times from what is known at an instant; never sees the truth
    (except the oracle, which only the simulator can make)."""

    exact: bool
    """Whether estimates never need to be refreshed."""

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """Total run time of `job`, given that it has already run `attained` ns."""
        ...

    def speed(self, job: Job, allocation: Allocation) -> float:
        """Progress per unit of time on these GPUs; 1.0 = reference."""
        ...

    def observe(self, job: Job, run_time: int, now: int) -> None:
        """A job has finished after `run_time` ns of running."""
        ...


class JobView(Protocol):
    """A job and what the scheduler knows of it. Read-only for policies."""

    @property
    def job(self) -> Job: ...
    @property
    def gpus(self) -> int:
        """Milli-GPUs it asks for."""
        ...

    @property
    def phase(self) -> Phase: ...
    @property
    def allocation(self) -> Allocation | None: ...
    @property
    def estimate(self) -> Estimate:
        """What the predictor says of its run time: `.total` (median, ns) and `.spread`.

        To use it, or what follows from it (`remaining`, `expected_end`), under an ordering
        that doesn't declare `uses_estimates` raises `PolicyError`.
        """
        ...

    @property
    def pending_since(self) -> int:
        """When the job last began to wait, ns."""
        ...

    @property
    def started_at(self) -> int:
        """When it was last asked to start, ns."""
        ...

    @property
    def running_since(self) -> int:
        """Since when it makes progress, ns; -1 if it doesn't."""
        ...

    @property
    def ran(self) -> bool:
        """Whether it has ever been started."""
        ...

    @property
    def protected_until(self) -> int:
        """It may not be stopped before this instant, ns."""
        ...

    @property
    def pending_key(self) -> int: ...
    @property
    def running_key(self) -> int: ...

    def attained(self, now: int) -> int:
        """Time spent running so far, ns."""
        ...

    def remaining(self, now: int) -> int:
        """Predicted work left at reference speed, ns; at least 0."""
        ...

    def expected_end(self, now: int) -> int:
        """Predicted end if left alone on its GPUs, ns; at least `now`."""
        ...


class PendingClass(Protocol):
    """Pending jobs that are alike to placement and limits; cheapest first."""

    request: Request
    tenant: str
    relaxed: bool

    def head(self) -> JobView | None:
        """The first job, or None."""
        ...

    def __iter__(self) -> Iterator[JobView]:
        """Its jobs in order, read lazily; take no step meanwhile."""
        ...

    def ordered(self) -> Sequence[JobView]:
        """All its jobs in order."""
        ...


class CapacityView(Protocol):
    """Free GPUs for planning: idle + being released − claimed.

    Node sets are int bit masks; the lowest bit is the deterministic choice.
    """

    @property
    def largest_node(self) -> int:
        """GPUs of the largest healthy node."""
        ...

    @property
    def gained(self) -> int:
        """Grows whenever GPUs become free: what found no room finds none while it stays."""
        ...

    @property
    def free_milli(self) -> int:
        """Free milli-GPUs on healthy nodes, fractions of shared devices included."""
        ...

    @property
    def size(self) -> Sequence[int]:
        """GPUs by node."""
        ...

    @property
    def free(self) -> Sequence[int]:
        """Mask of wholly free devices by node."""
        ...

    @property
    def with_free(self) -> Sequence[int]:
        """with_free[c]: mask of the healthy nodes with exactly c wholly free devices."""
        ...

    @property
    def whole(self) -> int:
        """Mask of the healthy nodes with no device in use."""
        ...

    def free_on(self, node: int) -> int:
        """Wholly free GPUs of a node."""
        ...

    def eligible(self, request: Request) -> int:
        """Mask of the healthy nodes of a type that the request accepts."""
        ...

    def domains(self, level: str) -> Sequence[int]:
        """Masks of the places of a level of the topology; none if the cluster lacks the level."""
        ...

    def shared_device(self, milli: int, nodes: int) -> tuple[int, int] | None:
        """(node, device) of the fullest device already shared by fractions that still
        has `milli` free on one of `nodes`, or None."""
        ...

    def fits(self, allocation: Allocation) -> bool:
        """Whether these very GPUs are free."""
        ...

    def take(self, allocation: Allocation) -> None: ...
    def give(self, allocation: Allocation) -> None: ...

    def copy(self) -> CapacityView:
        """A scratch copy for what-if questions."""
        ...


class TenantView(Protocol):
    """What a tenant holds and waits for."""

    @property
    def held(self) -> int:
        """Milli-GPUs of its holders."""
        ...

    @property
    def waiting(self) -> int:
        """Milli-GPUs that its pending jobs ask."""
        ...

    @property
    def jobs(self) -> Mapping[str, JobView]:
        """Its holders by id, in the order in which they got their GPUs."""
        ...

    @property
    def held_at(self) -> Mapping[int, int]:
        """Milli-GPUs of its holders by priority."""
        ...


class PlanView(Protocol):
    """The plan under construction: each step is validated and takes effect at once."""

    def start(self, job: JobView, allocation: Allocation) -> None: ...
    def preempt(self, job: JobView) -> None: ...

    def wake(self, at: int) -> None:
        """Ask the policy again at `at` at the latest, ns."""
        ...

    def mark(self) -> int:
        """A point of the plan to return to with `undo`."""
        ...

    def undo(self, mark: int = 0) -> None:
        """Take back all steps since `mark`, last first."""
        ...

    def wake_on_release(self, challenge: int | None) -> None:
        """Ask the policy again whenever a running job with a key above `challenge` loses its
        protection or becomes weaker; None = never. Holds until the next call; before the
        first, any job's does."""
        ...


class ClusterView(PlanView, Protocol):
    """All a policy sees. Live, not a snapshot; valid during one `plan` call."""

    @property
    def now(self) -> int: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def capacity(self) -> CapacityView: ...
    @property
    def predictor(self) -> Predictor: ...
    @property
    def rng(self) -> random.Random: ...

    @property
    def pending_classes(self) -> Iterable[PendingClass]:
        """The classes that have pending jobs."""
        ...

    def fresh(self) -> Collection[PendingClass]:
        """The classes that jobs were queued in since the last call."""
        ...

    @property
    def running(self) -> Collection[JobView]:
        """Jobs in phase RUNNING."""
        ...

    @property
    def holders(self) -> Collection[JobView]:
        """Jobs that hold GPUs or have been promised some, and are not stopping."""
        ...

    @property
    def running_order(self) -> Sequence[tuple[int, JobView]]:
        """(running key, job) of RUNNING jobs, who gives way last first. Kept only for
        an ordering that is preemptive and stable."""
        ...

    def on_node(self, node: int) -> Iterable[JobView]:
        """Jobs that hold GPUs of this node or have been promised them."""
        ...

    def improved(self) -> set[int]:
        """Nodes where GPUs were given back, or running jobs became weaker or lost their
        protection, since the last call. What the policy itself takes or stops doesn't count."""
        ...

    def touched(self) -> set[int]:
        """Nodes whose jobs, keys or free GPUs changed since the last call."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Milli-GPUs of the `holders` by tenant."""
        ...

    @property
    def tenants(self) -> Mapping[str, TenantView]:
        """Tenants that ever had a job, for policies that keep them apart (`by_tenant`)."""
        ...

    @property
    def weights(self) -> Mapping[str, float]:
        """Entitlement by tenant."""
        ...


class Ordering(Protocol):
    """Who is next, and who gives way: integer keys, smaller first.

    A pending key is constant while the job waits. A running key is constant while the
    job runs, between the instants named by `next_change`; an ordering for which that is
    not so says `stable = False` and pays for it.
    """

    preemptive: bool
    """Whether running jobs give way to waiting ones."""
    stable: bool
    uses_estimates: bool
    """Whether jobs get estimates; without it, to read one raises `PolicyError`."""

    def pending_key(self, job: JobView, now: int) -> int: ...

    def challenge(self, job: JobView, now: int) -> int:
        """The pending job's key in terms of running keys at instant `now`: it may
        displace running jobs whose key is larger."""
        ...

    def running_key(self, job: JobView, now: int) -> int: ...

    def apart(self, job: JobView) -> int:
        """Jobs with different numbers are kept in pending classes of their own. Within one, who
        comes first must not have the larger challenge: if it can't be placed none is tried."""
        ...

    def next_change(self, job: JobView, now: int) -> int | None:
        """The next instant at which the running key changes, ns."""
        ...

    def finished(self, job: JobView, now: int) -> None:
        """A job has finished: an ordering that learns may note it."""
        ...

    def refresh(self, view: ClusterView) -> None:
        """Called before the keys of an ordering that isn't stable are read."""
        ...


class Policy(Protocol):
    """What the engine needs of a policy."""

    name: str
    ordering: Ordering
    by_tenant: bool
    """Whether pending classes are kept apart by tenant."""
    relax: int | None
    """Waiting time after which a job accepts any nodes, ns; None = never."""
    min_run: int
    """Time for which a job that has just started may not be stopped, ns."""
    round: int
    """Decide only at multiples of this, ns; 0 = at every event."""

    def plan(self, view: ClusterView) -> None:
        """Decide, by steps on `view` (`start`, `preempt`, `wake`)."""
        ...

    def explain(self, view: Glance, job: JobView) -> Reason:
        """Why a job waits, after a decision."""
        ...

    def explain_all(self, view: Glance, jobs: Sequence[JobView]) -> list[Reason]:
        """Why each of the jobs waits."""
        ...

    def proposals(self, view: Glance, job: JobView, reason: Reason) -> Sequence[Proposal]:
        """Other ways for the job to ask that might help."""
        ...
