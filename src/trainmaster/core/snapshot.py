"""The whole state of an engine as plain data, and an engine made of it that goes on exactly so.

What is written is what can't be worked out anew: the jobs with their clocks, keys and GPUs, the
orders in which they stand, what the engine was about to do, and what policy and predictor
remember. Capacity, accounts and queues follow from that. Times are integer nanoseconds.

Two engines are in the same state when `capture` says the same of them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from trainmaster.core.accounts import Account
from trainmaster.core.engine import Engine
from trainmaster.core.invariants import HOLDING, check
from trainmaster.core.state import (
    NOMINATED,
    PENDING,
    RUNNING,
    STOPPING,
    UNKNOWN,
    JobState,
    PendingJobs,
    State,
)
from trainmaster.model.encoding import build, build_allocation, plain, plain_allocation
from trainmaster.model.errors import EngineError, InputError
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Estimate, Phase

OWN = frozenset({"job", "gpus", "phase", "allocation", "estimate", "members"})
"""What is written of a job in a way of its own; everything else is a number, as it is."""

NUMBERS = tuple(name for name in JobState.__slots__ if name not in OWN)

ENTRY = frozenset({"job", "phase", "on", "estimate", "class", *NUMBERS})
"""Keys of a job's entry."""


def capture(engine: Engine) -> dict[str, Any]:
    """The state of an engine between two instants.

    Returns:
        engine: what it was about to do; classes: of pending jobs; jobs: in order of submission;
        memory: of the policy; learned: of the predictor. All of it is plain data.
    """
    state, capacity = engine.state, engine.state.capacity
    used = {id(job.members) for job in state.jobs.values()} | {id(members) for members in state.queued}
    classes = {members: key for key, members in state.classes.items() if id(members) in used}
    numbers = {members: number for number, members in enumerate(classes)}
    view = engine._view
    return {
        "engine": {
            "now": engine.now,
            "decisions": engine.decisions,
            "ask": engine._ask,
            "wake_at": engine._wake_at,
            "wake_version": engine._wake_version,
            "woken": engine._woken,
            "challenge": view.release_challenge,
            "random": _plain_random(view.rng),
            "gained": capacity.gained,
            "down": [node.name for at, node in enumerate(state.cluster.nodes) if not capacity.is_up(at)],
            "nominated": list(engine._nominated),
            "running": list(state.running),
            "holders": list(state.holders),
            "held": list(state.held),
            "tenants": list(state.accounts),
            "allocated": list(state.allocated),
            "touched": sorted(state.touched),
            "improved": sorted(state.improved),
            "queued": [numbers[members] for members in state.queued],
            "protected": sorted(
                [until, version, job.job.id]
                for until, version, job in state.protected
                if job.phase is RUNNING and job.version == version
            ),
        },
        "classes": [
            {"request": plain(request), "tenant": tenant, "relaxed": relaxed, "apart": apart}
            for request, tenant, relaxed, apart in classes.values()
        ],
        "jobs": [_plain_job(job, state, numbers) for job in state.jobs.values()],
        "memory": engine.policy.memory() if hasattr(engine.policy, "memory") else {},
        "learned": engine.predictor.memory() if hasattr(engine.predictor, "memory") else [],
    }


def restore(engine: Engine, snapshot: Mapping[str, Any], jobs: Mapping[str, Job] | None = None) -> None:
    """Bring a fresh engine, with a fresh policy and predictor, into the state of a snapshot.

    Args:
        engine: has seen no event.
        snapshot: from `capture`. Entries of jobs and classes may hold the number of their line in a
            file under "line".
        jobs: those of the snapshot by id, where they are made already.

    Raises:
        InputError: the snapshot contradicts itself or doesn't fit the engine's cluster; names the
            line where entries have one.
    """
    state, said = engine.state, snapshot["engine"]
    classes = [_class(state, entry) for entry in snapshot["classes"]]
    for entry in snapshot["jobs"]:
        try:
            _take_in(state, entry, classes, jobs)
        except InputError as error:
            raise InputError(
                error.message, row=entry.get("line"), column=error.column, mend=error.mend
            ) from None
    _set_orders(engine, said, classes)
    _fill_capacity(state, snapshot["jobs"], said)
    engine.now = said["now"]
    engine.decisions = said["decisions"]
    engine._ask, engine._woken = said["ask"], said["woken"]
    engine._wake_at, engine._wake_version = said["wake_at"], said["wake_version"]
    view = engine._view
    view.now = said["now"]
    view.release_challenge = said["challenge"]
    if said.get("random") is not None:
        view.rng.setstate(_random_state(said["random"]))
    if hasattr(engine.predictor, "recall"):
        engine.predictor.recall(snapshot["learned"])
    if hasattr(engine.policy, "recall"):
        engine.policy.recall(snapshot["memory"], view, state.jobs)
    try:
        check(state, engine._nominated, engine.now)
    except EngineError as error:
        raise InputError(f"the state contradicts itself: {error}", mend="take a new snapshot") from None


# -- jobs -----------------------------------------------------------------------------------------


def _plain_job(job: JobState, state: State, numbers: Mapping[PendingJobs, int]) -> dict[str, Any]:
    fresh = JobState(job.job, 0)
    entry: dict[str, Any] = {"job": plain(job.job), "phase": job.phase.value}
    if job.allocation is not None:
        entry["on"] = plain_allocation(job.allocation, state.cluster)
    if job.estimate is not UNKNOWN:
        entry["estimate"] = list(job.estimate)
    if job.members is not None:
        entry["class"] = numbers[job.members]
    for name in NUMBERS:
        value = getattr(job, name)
        if value != getattr(fresh, name):
            entry[name] = value
    return entry


def _take_in(
    state: State, entry: Mapping[str, Any], classes: list[PendingJobs], jobs: Mapping[str, Job] | None
) -> None:
    """Make a job as its entry says."""
    unknown = next((name for name in entry if name not in ENTRY and name != "line"), None)
    if unknown is not None:
        raise InputError(f"{unknown!r} is nothing that a job has", column=unknown, mend="leave it out")
    found = build(Job, entry["job"]) if jobs is None else jobs[entry["job"]["id"]]
    job = JobState(found, 0)
    if found.id in state.jobs:
        raise InputError(f"job {found.id} stands twice", mend="leave one out")
    for name in NUMBERS:
        if name in entry:
            if not isinstance(entry[name], int | float):
                raise InputError(f"{name} of job {found.id} is {entry[name]!r:.60}", column=name)
            setattr(job, name, entry[name])
    try:
        job.phase = Phase(entry["phase"])
    except ValueError:
        known = ", ".join(phase.value for phase in (PENDING, *HOLDING))
        raise InputError(
            f"job {found.id} is {entry['phase']!r:.60}", column="phase", mend=f"one of {known}"
        ) from None
    if "estimate" in entry:
        job.estimate = Estimate(*entry["estimate"])
    if "class" in entry:
        job.members = classes[entry["class"]]
    if "on" in entry:
        job.allocation = build_allocation(entry["on"], state.cluster)
    _refuse_contradiction(state, job)
    state.jobs[found.id] = job
    state._tickets = max(state._tickets, job.ticket)
    if job.ticket:
        if job.members is None:
            raise InputError(f"job {found.id} waits in no class", column="class")
        job.members.add(job)


def _refuse_contradiction(state: State, job: JobState) -> None:
    name, request = job.job.id, job.job.request
    if job.phase is not PENDING and job.phase not in HOLDING:
        raise InputError(f"job {name} is {job.phase.value}, and no longer in the system", mend="leave it out")
    if (job.allocation is not None) != (job.phase in HOLDING):
        holds = "holds GPUs" if job.allocation is not None else "holds no GPUs"
        raise InputError(f"job {name} is {job.phase.value} and {holds}", column="on", mend="mend one of both")
    if job.allocation is None:
        return
    if job.allocation.milli != request.gpus:
        what = f"job {name} asks {request.gpus / 1000:g} GPUs and holds {job.allocation.milli / 1000:g}"
        raise InputError(what, column="on", mend="a gang holds all of its GPUs or none")
    fault = state.capacity.fault(job.allocation, request)
    if fault:
        raise InputError(f"job {name}: {fault}", column="on", mend="name GPUs that the cluster has")


def _class(state: State, entry: Mapping[str, Any]) -> PendingJobs:
    request = build(Request, entry["request"])
    key = (request, entry["tenant"], entry["relaxed"], entry["apart"])
    members = state.classes[key] = PendingJobs(request, entry["tenant"], entry["relaxed"])
    return members


# -- what follows from the jobs -------------------------------------------------------------------


def _set_orders(engine: Engine, said: Mapping[str, Any], classes: list[PendingJobs]) -> None:
    state = engine.state
    for what in ("nominated", "running", "holders", "held"):
        lost = next((name for name in said[what] if name not in state.jobs), None)
        if lost is not None:
            raise InputError(f"job {lost} is {what} and has no line", mend="take a new snapshot")
    jobs = state.jobs
    engine._nominated = {name: jobs[name] for name in said["nominated"]}
    state.held = {name: jobs[name] for name in said["held"]}
    state.running = {name: jobs[name] for name in said["running"]}
    state.allocated = dict.fromkeys(said["allocated"], 0)
    state.accounts = {tenant: Account() for tenant in said["tenants"]}
    for name in said["holders"]:
        state._hold(jobs[name])
    if state._by_tenant:
        for job in jobs.values():
            if job.ticket:
                state._account(job).waiting += job.gpus
    # Where nobody remembers what found no room, it is tried again and finds none again.
    state.queued = {classes[number]: None for number in said["queued"]}
    state.fresh = dict.fromkeys(state.queued)
    state.touched, state.improved = set(said["touched"]), set(said["improved"])
    state.protected = deque(
        sorted((until, version, jobs[name]) for until, version, name in said["protected"])
    )
    if state.order is not None:
        for job in state.running.values():
            state.order.add(job)


def _fill_capacity(state: State, entries: list[Mapping[str, Any]], said: Mapping[str, Any]) -> None:
    capacity = state.capacity
    for entry in entries:
        job = state.jobs[entry["job"]["id"]]
        allocation = job.allocation
        if allocation is None:
            continue
        if job.phase is STOPPING:
            capacity.hold(allocation)
        elif capacity.fits(allocation):
            capacity.take_back(allocation)
        else:
            mend = "one of both can't hold it"
            what = f"job {job.job.id} holds a GPU that another job holds"
            raise InputError(what, row=entry.get("line"), column="on", mend=mend)
        if job.phase is not NOMINATED:
            capacity.begin(allocation)
        for share in allocation.shares:
            state.by_node[share.node][job.job.id] = job
    for name in said["down"]:
        if name not in state.cluster.names:
            raise InputError(f"there is no node {name!r}", mend="take a new snapshot")
        capacity.set_up(state.cluster.names[name], False)
    capacity.gained = said["gained"]


# -- the random generator -------------------------------------------------------------------------


def _plain_random(rng: random.Random) -> list[Any]:
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def _random_state(entry: list[Any]) -> tuple[Any, ...]:
    version, internal, gauss = entry
    return version, tuple(internal), gauss
