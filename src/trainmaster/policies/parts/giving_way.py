"""Why nobody gives way to a job that waits, and why its queue can't take GPUs back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from trainmaster.model.job import Request
from trainmaster.model.ports import JobView, Phase
from trainmaster.model.queues import Queue
from trainmaster.model.reason import Level, Reason
from trainmaster.model.units import GPU
from trainmaster.policies.parts import reason_words as words
from trainmaster.policies.parts.admission import weakest_last
from trainmaster.policies.parts.reason_kinds import awaiting, extended, promised
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.room import make_room
from trainmaster.policies.parts.victims import allocation_of, may_stop

ROOM = frozenset(
    {
        Level.CAPACITY,
        Level.GANG,
        Level.FRAGMENTATION,
        Level.NODE_SHAPE,
        Level.GPU_TYPE,
        Level.LABELS,
        Level.TOPOLOGY,
    }
)
"""Levels at which stopping others could help."""

TOO_FEW = frozenset({Level.CAPACITY, Level.GANG, Level.GPU_TYPE, Level.LABELS})
"""Those of them at which it is too few GPUs that are free, not the wrong ones."""

Kept = tuple[JobView, int, int]
"""(who is promised GPUs, from when on in ns, mask of the nodes)"""


def by_key(inquiry: Inquiry, job: JobView) -> Reason | None:
    """What is lacking, and why nobody with a weaker running key makes up for it."""
    reason = inquiry.lacks(job)
    if reason is None or reason.level not in ROOM:
        return reason
    request, runners = job.job.request, inquiry.runners
    challenge = inquiry.ordering.challenge(job, inquiry.view.now)
    if runners.weakest is None or runners.weakest <= challenge:
        change = runners.next_change
        before = "" if change is None else f" before {words.instant(change, inquiry.view.now)}"
        return extended(reason, f"; no running job gives way to it{before}")
    nodes = inquiry.view.capacity.eligible(request)
    one = inquiry.together(request)
    need = request.gpus if inquiry.pooled else -(-request.gpus // GPU) * GPU
    if one and not request.within:
        release = runners.release(nodes, challenge, need)
    else:
        release = runners.release_for(inquiry.view.capacity, inquiry.placement, request, challenge)
    if release is not None:
        return protected(inquiry, job, *release)
    return not_enough(inquiry, reason, need, runners.reach(nodes, challenge) if one else None)


def protected(inquiry: Inquiry, job: JobView, until: int, victim: JobView) -> Reason:
    """A job that would give way may not be stopped yet."""
    name = victim.job.id
    when = words.instant(until, inquiry.view.now)
    text = f"waits for {inquiry.asks(job.job.request)}; {name} would give way to it, but may not be stopped "
    text += f"before {when}: its minimum run time"
    return Reason(Level.PROTECTION, text, {"asked_gpus": job.gpus, "until_ns": until}, {"protected": name})


def not_enough(inquiry: Inquiry, reason: Reason, need: int, reach: int | None) -> Reason:
    """All that give way to the job would not be enough.

    Args:
        need: milli-GPUs that have to be free together.
        reach: milli-GPUs that can be; None = it needs them on several nodes.
    """
    if reach is None:
        return extended(reason, "; evicting all who give way to it would not be enough")
    if reach >= need:
        return reason  # it has not been decided since
    free = words.gpus(need).removesuffix(" GPUs").removesuffix(" GPU")
    if inquiry.pooled:
        text = f"; evicting others can make {words.gpus(reach)} free at most"
    else:
        text = f"; no node can reach {free} free by evicting others: at most {words.gpus(reach)}"
    return extended(reason, text, reachable_gpus=reach)


# -- queues ----------------------------------------------------------------------------------------


def by_turn(
    inquiry: Inquiry, job: JobView, promises: Sequence[Kept], nodes: int, *, preempt: bool
) -> Reason | None:
    """Why a job waits where queues take turns.

    Args:
        promises: GPUs that are kept for waiting jobs.
        nodes: mask of those that are not kept for anybody whom the job would delay.
        preempt: whether jobs may be stopped for others.
    """
    refused = _refused(inquiry, job)
    if refused is not None:
        return refused
    full = _full(inquiry, job)
    if full is not None:
        return full
    stopper = _stopper(inquiry, job.job.tenant)
    if stopper is not None and stopper[0].pending_key < job.pending_key:
        return inquiry.behind(job, *stopper, of_tenant=True)
    lack = inquiry.lacks(job)
    if lack is None:
        return _kept(inquiry, job, promises, nodes)
    if preempt:
        lack = by_queue(inquiry, job, lack, nodes)
    own = next((at for other, at, where in promises if other is job and where), None)
    return lack if own is None else awaiting(inquiry, lack, own)


def _refused(inquiry: Inquiry, job: JobView) -> Reason | None:
    """The job may never start."""
    refusal = inquiry.quotas.refusal(job)
    if not refusal:
        return None
    tenant, tree = job.job.tenant, inquiry.view.cluster.queues
    assert tree is not None, "without queues nobody is refused"
    if tenant not in tree or tree.children(tenant):
        text = f"may not start: {refusal}"
        return Reason(Level.QUEUE_UNKNOWN, text, names={"queue": tenant}, permanent=True)
    queue = next(q for q in tree.path(tenant) if q.limit is not None and job.gpus > q.limit)
    numbers = {"asked_gpus": job.gpus, "limit_gpus": queue.limit or 0}
    text = f"may never start: {refusal}"
    return Reason(Level.LIMIT, text, numbers, {"queue": queue.name}, permanent=True)


def _full(inquiry: Inquiry, job: JobView) -> Reason | None:
    """A queue on the job's path would exceed its limit."""
    queue = inquiry.quotas.full(job)
    if queue is None:
        return None
    held, limit = inquiry.quotas.used[queue.name], queue.limit or 0
    text = f"waits for {inquiry.asks(job.job.request)}; queue {queue.name} holds {words.gpus(held)} and "
    text += f"may hold {words.gpus(limit)} at most"
    numbers = {"asked_gpus": job.gpus, "queue_held_gpus": held, "limit_gpus": limit}
    return Reason(Level.LIMIT, text, numbers, {"queue": queue.name})


def _stopper(inquiry: Inquiry, tenant: str) -> tuple[JobView, Reason] | None:
    """The first waiting job of a queue that a limit holds back, and how: what comes behind waits for it."""
    key = ("stopper", tenant)
    if key not in inquiry.known:
        allowed = (
            job for job in inquiry.queue if job.job.tenant == tenant and not inquiry.quotas.refusal(job)
        )
        pairs = ((job, _full(inquiry, job)) for job in allowed)
        inquiry.known[key] = next(((job, full) for job, full in pairs if full is not None), None)
    found: tuple[JobView, Reason] | None = inquiry.known[key]
    return found


def _kept(inquiry: Inquiry, job: JobView, promises: Sequence[Kept], nodes: int) -> Reason | None:
    """There is room, but on nodes that are promised to somebody else."""
    allocation = inquiry.room(job)
    if allocation is None or inquiry.room(job, nodes) is not None:
        return None
    there = sum(1 << node for node in set(allocation.nodes)) & ~nodes
    other, at, _ = next((kept for kept in promises if kept[2] & there), promises[0])
    return promised(inquiry, job, other, at)


def by_queue(inquiry: Inquiry, job: JobView, reason: Reason, nodes: int) -> Reason:
    """What is lacking, and why neither the job's own queue nor another gives way.

    Args:
        nodes: mask of the nodes that the job may use.
    """
    if reason.level not in ROOM:
        return reason
    request, view = job.job.request, inquiry.view
    key = ("by queue", job.job.tenant, job.job.priority, request, view.relaxed(job), nodes)
    if key not in inquiry.known:
        inquiry.known[key] = _by_queue(inquiry, job, reason, nodes)
    found: Reason = inquiry.known[key]
    return found


def _by_queue(inquiry: Inquiry, job: JobView, reason: Reason, nodes: int) -> Reason:
    view, request = inquiry.view, job.job.request
    now = _candidates(inquiry, job, view.now)
    ends = sorted({other.protected_until for other in view.running if other.protected_until > view.now})
    if ends:
        release = _release(inquiry, job, ends, nodes, len(now))
        if release is not None:
            return protected(inquiry, job, *release)
    if not now:
        return _entitled(inquiry, job, reason)
    one = inquiry.together(request)
    if not one:
        return not_enough(inquiry, reason, request.gpus, None)
    need = request.gpus if inquiry.pooled else -(-request.gpus // GPU) * GPU
    return not_enough(inquiry, reason, need, _reach(inquiry, request, now))


def _candidates(inquiry: Inquiry, job: JobView, at: int) -> list[JobView]:
    """Jobs that could be stopped for this one at an instant, the first to go first."""
    account = inquiry.view.tenants.get(job.job.tenant)
    own: Iterable[JobView] = () if account is None else account.jobs.values()
    weaker = [other for other in own if other.job.priority < job.job.priority and may_stop(other, at)]
    return [*weakest_last(weaker)[::-1], *inquiry.quotas.borrowed(job, at)]


def _release(
    inquiry: Inquiry, job: JobView, ends: Sequence[int], nodes: int, before: int
) -> tuple[int, JobView] | None:
    """The first end of a minimum run time with which there would be room, and whose it is."""

    def helps(at: int) -> bool:
        candidates = _candidates(inquiry, job, at)
        if len(candidates) <= before:
            return False
        request = job.job.request
        return make_room(view.capacity, inquiry.placement, request, candidates, nodes=nodes) is not None

    view = inquiry.view
    if not helps(ends[-1]):
        return None
    until = ends[bisect_left(ends, True, key=helps)]
    last = [other for other in _candidates(inquiry, job, until) if other.protected_until == until]
    return (until, last[0]) if last else None


def _reach(inquiry: Inquiry, request: Request, candidates: Iterable[JobView]) -> int:
    """Milli-GPUs that can be free together on one node with all candidates stopped."""
    capacity = inquiry.view.capacity
    nodes = capacity.eligible(request)
    gains: dict[int, int] = {}
    for other in candidates:
        for share in allocation_of(other).shares:
            if nodes >> share.node & 1:
                gains[share.node] = gains.get(share.node, 0) + share.milli
    if inquiry.pooled:
        return capacity.free_milli + sum(gains.values())
    most = inquiry.free(nodes).most
    return max([most, *(capacity.free_on(node) * GPU + gain for node, gain in gains.items())])


def _entitled(inquiry: Inquiry, job: JobView, reason: Reason) -> Reason:
    """Whether it is the queue's own share that keeps it from taking GPUs back."""
    queue = _own_queue_with_enough(inquiry, job)
    if queue is None:
        return extended(reason, "; no running job gives way to it")
    quotas = inquiry.quotas
    fair = queue.reclaim == "fair-share"
    held, claim = quotas.used[queue.name], quotas.claim(queue, fair)
    if queue.reclaim == "none":
        text = f"; queue {queue.name} takes nothing back from others"
    elif not claim:
        text = f"; queue {queue.name} is guaranteed none: it gets what others leave"
    else:
        what = "the fair share" if fair else "the guarantee"
        text = (
            f"; with this job queue {queue.name}, which holds {words.gpus(held)}, would be above {what} of "
        )
        text += f"{words.gpus(claim)}, so nobody gives way to it"
    level = Level.QUOTA if reason.level in TOO_FEW else reason.level
    numbers = {**reason.numbers, "queue_held_gpus": held, "queue_claim_gpus": claim}
    return Reason(level, f"{reason.sentence}{text}", numbers, {**reason.names, "queue": queue.name})


def _own_queue_with_enough(inquiry: Inquiry, job: JobView) -> Queue | None:
    """The queue on the job's path that may not claim so much more from those who hold GPUs which
    the job could use; None = that is not what it waits for."""
    view, quotas = inquiry.view, inquiry.quotas
    if view.cluster.queues is None:
        return None
    path = quotas.path(job.job.tenant)[::-1]
    found: Queue | None = None
    total = view.capacity.free_milli
    for tenant, account in view.tenants.items():
        if tenant == job.job.tenant or not account.held or quotas.unknown(tenant):
            continue
        total += sum(other.gpus for other in account.jobs.values() if _could_stop(other))
        other_path = quotas.path(tenant)[::-1]
        own = next(
            (own for own, other in zip(path, other_path, strict=False) if own.name != other.name), None
        )
        if own is None:
            continue
        fair = own.reclaim == "fair-share"
        if own.reclaim != "none" and quotas.used[own.name] + job.gpus <= quotas.claim(own, fair):
            return None
        found = found or own
    return found if total >= job.gpus else None


def _could_stop(job: JobView) -> bool:
    return job.phase is Phase.RUNNING and job.job.request.preemptible
