"""Reasons that several policies give, made of what an `Inquiry` finds, and what might help."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.ports import JobView, Phase
from trainmaster.model.reason import Level, Reason
from trainmaster.model.units import GPU
from trainmaster.policies.parts import reason_words as words
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.victims import allocation_of


def extended(reason: Reason, text: str, **numbers: int) -> Reason:
    """The reason, its sentence going on."""
    return replace(reason, sentence=f"{reason.sentence}{text}", numbers={**reason.numbers, **numbers})


def awaiting(inquiry: Inquiry, reason: Reason, at: int) -> Reason:
    """The reason of a job whose GPUs are expected to be free at an instant, and are kept for it."""
    when = words.instant(at, inquiry.view.now)
    own = f"; GPUs are kept for it, and expected to be free at {when}"
    return replace(extended(reason, own, expected_ns=at), own=own)


def promised(inquiry: Inquiry, job: JobView, to: JobView | None, at: int) -> Reason:
    """There is room, but not for as long as the job is expected to run.

    Args:
        to: whom GPUs are promised; None = jobs before it.
        at: from when on, ns; where nobody is named, when those of the job itself are expected.
    """
    now = inquiry.view.now
    asked = f"waits for {inquiry.asks(job.job.request, inquiry.view.relaxed(job))}"
    end = job.expected_end(now)
    numbers = {"asked_gpus": job.gpus, "promised_ns": at, "expected_end_ns": end}
    are = "is" if job.gpus <= GPU else "are"
    if to is None:
        own = f"; its own are expected at {words.instant(at, now)}"
        text = f"{asked}, which {are} free but kept for jobs before it{own}"
        return Reason(Level.PROMISE, text, numbers, own=own)
    own = f"; it is expected to run until {words.instant(end, now)}"
    text = f"{asked}, which {are} free but promised to {to.job.id} from {words.instant(at, now)} on{own}"
    return Reason(Level.PROMISE, text, numbers, {"promised_to": to.job.id}, own=own)


def not_yet(inquiry: Inquiry, job: JobView) -> Reason | None:
    """What keeps a job from waiting in the queue at all."""
    at = job.job.not_before
    if job.phase is Phase.NOMINATED:
        return _stopping(inquiry, job)
    if at <= inquiry.view.now:
        return None
    return Reason(
        Level.EARLIEST_START,
        f"must not start before {words.instant(at, inquiry.view.now)}",
        {"not_before_ns": at},
    )


def _on(inquiry: Inquiry, allocation: Allocation) -> list[str]:
    """Jobs that are stopping on these GPUs."""
    found: dict[str, None] = {}
    for share in allocation.shares:
        for other in inquiry.view.on_node(share.node):
            if other.phase is Phase.STOPPING and _overlap(share, allocation_of(other)):
                found[other.job.id] = None
    return list(found)


def _stopping(inquiry: Inquiry, job: JobView) -> Reason:
    """Who still sits on the GPUs that were chosen for the job."""
    view = inquiry.view
    mine = allocation_of(job)
    found = _on(inquiry, mine)
    where = "" if inquiry.pooled else f" on {words.node_names(view.cluster, mine.nodes)}"
    who = words.names(found)
    text = f"has its {words.gpus(job.gpus)}{where} and starts once "
    text += f"{who} {'has' if len(found) == 1 else 'have'} stopped there" if found else "they are empty"
    numbers = {"asked_gpus": job.gpus, "stopping_jobs": len(found)}
    return Reason(Level.STOPPING, text, numbers, {"stopping": who, "nodes": where.removeprefix(" on ")})


def _overlap(share: Share, other: Allocation) -> bool:
    # In a pool no devices are told apart.
    return any(
        share.node == there.node and (share.devices & there.devices or not share.devices)
        for there in other.shares
    )


def unsaid(inquiry: Inquiry, job: JobView, policy: str, round_: int) -> Reason:
    """There is room, and the walk says nothing against the job.

    Args:
        round_: the policy decides only at multiples of this, ns; 0 = at every event.
    """
    now = inquiry.view.now
    if round_ and now % round_:
        at = now - now % round_ + round_
        when = words.instant(at, now)
        text = f"waits for the next decision at {when}: {policy} decides every {words.span(round_)}"
        return Reason(Level.ROUND, text, {"decides_ns": at})
    allocation = inquiry.room(job)
    if allocation is None:
        return inquiry.lacks(job) or Reason(Level.POLICY, f"is left waiting by {policy}")
    where = "" if inquiry.pooled else f" on {words.node_names(inquiry.view.cluster, allocation.nodes)}"
    who = _on(inquiry, allocation)
    if who:
        text = f"could go where {words.names(who)} {'is' if len(who) == 1 else 'are'} still stopping{where}, "
        text += "after which the next decision is made"
        numbers = {"asked_gpus": job.gpus, "stopping_jobs": len(who)}
        return Reason(Level.STOPPING, text, numbers, {"stopping": words.names(who)})
    text = f"waits although there is room{where}: {policy} does not say why"
    return Reason(Level.POLICY, text, {"asked_gpus": job.gpus})
