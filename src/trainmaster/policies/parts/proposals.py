"""What might help a job that waits: other ways to ask, and what could happen to others."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.model.allocation import bits
from trainmaster.model.event import Cancelled, Event, Finished, NodeUp
from trainmaster.model.ports import JobView
from trainmaster.model.reason import Level, Proposal, Reason
from trainmaster.model.units import GPU
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.room import make_room

UNMENDED = frozenset(
    {
        Level.QUEUE_UNKNOWN,
        Level.DEPENDENCY,
        Level.EARLIEST_START,
        Level.STOPPING,
        Level.ROUND,
        Level.POLICY,
    }
)
"""Levels at which nothing helps that is known here."""

MOST = 3
"""Nobody is told that more jobs than these would have to end, or more nodes to return."""


def proposals(inquiry: Inquiry, job: JobView, reason: Reason) -> list[Proposal]:
    """What might help a job that waits for this reason; each is still to be tried."""
    if reason.level in UNMENDED:
        return []
    found = [] if reason.level is Level.ORDER else [*_asking_less(inquiry, job), *_less_choosy(inquiry, job)]
    in_front = reason.names.get("behind") or reason.names.get("promised_to")
    if in_front is not None:
        found.append(_happening(job, "job_withdrawn", (Cancelled(in_front),), (in_front,)))
    elif reason.level is Level.HEALTH:
        found += _nodes_return(inquiry, job)
    elif inquiry.up and not reason.permanent:
        found += _jobs_end(inquiry, job, reason)
    return found


def _asking_less(inquiry: Inquiry, job: JobView) -> list[Proposal]:
    request = job.job.request
    gpus, rest = divmod(request.pod, GPU)
    if request.pods is None or request.pods < 2 or inquiry.pooled:
        most = gpus if rest else gpus - 1
        return [Proposal("gpus", [replace(request, gpus=each * GPU) for each in range(most, 0, -1)])]
    pods = range(request.pods - 1, 0, -1)
    found = [Proposal("pods", [replace(request, gpus=request.pod * fewer, pods=fewer) for fewer in pods])]
    if not rest:
        sizes = range(gpus - 1, 0, -1)
        smaller = [replace(request, gpus=each * GPU * request.pods) for each in sizes]
        found.append(Proposal("pod_gpus", smaller))
    return found


def _less_choosy(inquiry: Inquiry, job: JobView) -> list[Proposal]:
    request = job.job.request
    if inquiry.pooled:
        return []
    found: list[Proposal] = []
    if request.gpu_types:
        found.append(Proposal("gpu_types", [replace(request, gpu_types=())]))
    if request.labels:
        found.append(Proposal("labels", [replace(request, labels=())]))
    if request.within:
        found.append(Proposal("within", [replace(request, within="")]))
    if request.pods is None and inquiry.on_one(request, inquiry.view.relaxed(job)):
        found.append(Proposal("nodes", [request], relaxed=True))
    return found


def _nodes_return(inquiry: Inquiry, job: JobView) -> list[Proposal]:
    """Nodes that are down, as many as are named."""
    nodes = inquiry.view.cluster.nodes
    down = [node for node in bits(inquiry.view.empty.eligible(job.job.request)) if not inquiry.up >> node & 1]
    if len(down) > MOST:
        return []
    events = tuple(NodeUp(node) for node in down)
    return [_happening(job, "nodes_return", events, tuple(nodes[node].name for node in down))]


def _jobs_end(inquiry: Inquiry, job: JobView, reason: Reason) -> list[Proposal]:
    """A few of the youngest running jobs that are in the way."""
    view = inquiry.view
    running = sorted(view.running, key=lambda other: (-other.started_at, -other.job.sequence))
    excess = 0
    if reason.level is Level.LIMIT:
        queue, numbers = reason.names["queue"], reason.numbers
        running = [other for other in running if _is_below(inquiry, other, queue)]
        excess = numbers["queue_held_gpus"] + job.gpus - numbers["limit_gpus"]
    request = job.job.request
    victims = make_room(view.capacity, inquiry.placement, request, running, at_least=excess)
    if not victims or len(victims) > MOST:
        return []
    ids = tuple(victim.job.id for victim in victims)
    return [_happening(job, "jobs_end", tuple(Finished(name) for name in ids), ids)]


def _is_below(inquiry: Inquiry, job: JobView, queue: str) -> bool:
    quotas = inquiry.quotas
    tenant = job.job.tenant
    return not quotas.unknown(tenant) and any(above.name == queue for above in quotas.path(tenant))


def _happening(job: JobView, change: str, events: tuple[Event, ...], names: tuple[str, ...]) -> Proposal:
    return Proposal(change, [job.job.request], events=events, names=names)
