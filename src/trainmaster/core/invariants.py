"""What must hold after every instant. Checked by `simulate --validate` and all tests."""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.core.capacity import NodeCapacity
from trainmaster.core.state import JobState, State
from trainmaster.model.errors import EngineError
from trainmaster.model.ports import Phase
from trainmaster.model.units import GPU

HOLDING = (Phase.NOMINATED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING)


def check(state: State, nominated: Mapping[str, JobState], now: int) -> None:
    """Compare the incremental state with one rebuilt from the jobs.

    Raises:
        EngineError: names what differs.
    """
    _check_phases(state, nominated, now)
    _check_accounts(state)
    if isinstance(state.capacity, NodeCapacity):
        _check_devices(state, state.capacity)
    else:
        used = sum(job.allocation.milli for job in _claimants(state) if job.allocation)
        _same("free GPUs of the pool", state.capacity.free_milli, state.cluster.gpus * GPU - used)


def _claimants(state: State) -> list[JobState]:
    return [job for job in state.jobs.values() if job.phase in HOLDING and job.phase is not Phase.STOPPING]


def _check_phases(state: State, nominated: Mapping[str, JobState], now: int) -> None:
    queued = {id(job) for members in state.classes.values() for job in members.ordered()}
    for name, job in state.jobs.items():
        waits = job.phase is Phase.PENDING and name not in state.held
        _same(f"job {name} is queued", id(job) in queued, waits)
        _same(f"job {name} holds GPUs", job.allocation is not None, job.phase in HOLDING)
        _same(f"job {name} is in the running set", name in state.running, job.phase is Phase.RUNNING)
        _same(f"job {name} is nominated", name in nominated, job.phase is Phase.NOMINATED)
        _same(f"job {name} makes progress", job.running_since >= 0, job.phase is Phase.RUNNING)
        if job.allocation is not None:
            _same(f"size of the gang of {name}", job.allocation.milli, job.job.request.gpus)
        if job.done(now) < 0 or job.pending_since > now:
            raise EngineError(f"job {name} has a clock that runs backwards")


def _check_accounts(state: State) -> None:
    allocated: dict[str, int] = {}
    on_node: list[set[str]] = [set() for _ in state.cluster.nodes]
    for name, job in state.jobs.items():
        if job.allocation is None:
            continue
        tenant = job.job.tenant
        if job.phase is not Phase.STOPPING:
            allocated[tenant] = allocated.get(tenant, 0) + job.allocation.milli
        for share in job.allocation.shares:
            on_node[share.node].add(name)
    for tenant in allocated.keys() | state.allocated.keys():
        _same(f"GPUs of tenant {tenant!r}", state.allocated.get(tenant, 0), allocated.get(tenant, 0))
    for tenant, account in state.accounts.items():
        own = [job for job in state.jobs.values() if job.job.tenant == tenant]
        holding = [job for job in own if job.phase in HOLDING and job.phase is not Phase.STOPPING]
        asked = sum(job.gpus for job in own if job.phase is Phase.PENDING and job.job.id not in state.held)
        _same(f"GPUs that tenant {tenant!r} waits for", account.waiting, asked)
        _same(f"jobs of tenant {tenant!r}", set(account.jobs.values()), set(holding))
        _same(f"GPUs of tenant {tenant!r} in its account", account.held, allocated.get(tenant, 0))
        _same(f"GPUs of tenant {tenant!r} by priority", sum(account.held_at.values()), account.held)
    _same("jobs by node", [set(jobs) for jobs in state.by_node], on_node)


def _check_devices(state: State, capacity: NodeCapacity) -> None:
    """No device is used twice, and the free masks are those of the jobs."""
    used: dict[tuple[int, int], int] = {}
    for job in _claimants(state):
        assert job.allocation is not None
        for node, devices, milli in job.allocation.shares:
            each = GPU if milli >= GPU else milli
            for device in range(devices.bit_length()):
                if devices >> device & 1:
                    used[node, device] = used.get((node, device), 0) + each
    for (node, device), milli in used.items():
        if milli > GPU:
            raise EngineError(
                f"device {device} of node {state.cluster.nodes[node].name} is used {milli} / {GPU}"
            )
    free_milli = 0
    for node, size in enumerate(capacity.size):
        free = sum(1 << device for device in range(size) if (node, device) not in used)
        name = state.cluster.nodes[node].name
        _same(f"free devices of node {name}", capacity.free[node], free)
        up = capacity.is_up(node)
        for count, mask in enumerate(capacity.with_free):
            _same(
                f"index entry {count} of node {name}",
                bool(mask >> node & 1),
                up and count == free.bit_count(),
            )
        _same(
            f"node {name} is wholly free", bool(capacity.whole >> node & 1), up and free.bit_count() == size
        )
        if up:
            free_milli += sum(GPU - used.get((node, device), 0) for device in range(size))
    _same("free milli-GPUs", capacity.free_milli, free_milli)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise EngineError(f"invariant broken: {what}: found {found}, expected {expected}")
