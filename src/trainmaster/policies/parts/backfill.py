"""Walks through the queue that leave running jobs alone.

They differ in what happens behind a job that can't start: nothing (`Blocking`),
anything (`Greedy`), or only what doesn't delay it (`Easy`: the first blocked job has a
reservation; `Conservative`: every job has one).

Source: Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime
Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop
from itertools import accumulate
from typing import Protocol

from trainmaster.model.allocation import Allocation, Share, lowest_devices
from trainmaster.model.ports import CapacityView, ClusterView, JobView, Ordering, PendingClass
from trainmaster.model.reason import Reason
from trainmaster.model.units import GPU
from trainmaster.policies.parts.placement import EVERYWHERE, Placement
from trainmaster.policies.parts.queue import Heads, Merged
from trainmaster.policies.parts.reason_kinds import awaiting, promised
from trainmaster.policies.parts.reasons import Inquiry


class Walk(Protocol):
    """How one decision goes through the queue."""

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """Take the steps of one decision."""
        ...


class InOrder:
    """What walks share that start jobs in order until one can't start."""

    def __init__(self) -> None:
        self._kept: Heads | None = None

    def heads(self, view: ClusterView, ordering: Ordering) -> Heads:
        """The pending classes; kept between decisions where keys are constant."""
        if not ordering.stable:
            ordering.refresh(view)
            return Heads(view, ordering, view.pending_classes)
        if self._kept is None:
            self._kept = Heads(view, ordering)
        for members in view.fresh():
            self._kept.add(members)
        return self._kept

    def start(self, view: ClusterView, heads: Heads, placement: Placement) -> JobView | None:
        """Start jobs in order; returns the first that can't start, now first of `heads`."""
        while (job := heads.first()) is not None:
            members = heads.members
            allocation = placement.find(view.capacity, members.request, relaxed=members.relaxed)
            if allocation is None:
                return job
            view.start(job, allocation)
            heads.advance()
        return None


class Blocking(InOrder):
    """In order; the first job that can't start blocks all behind it."""

    def __init__(self) -> None:
        super().__init__()
        # The first job that found no room, and its class: it may accept any nodes later on.
        self._blocked: tuple[JobView, PendingClass] | None = None
        self._gained = -1

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        heads = self.heads(view, ordering)
        first = heads.first()
        if first is None or (
            self._gained == view.capacity.gained and self._blocked == (first, heads.members)
        ):
            return
        job = self.start(view, heads, placement)
        self._blocked = None if job is None else (job, heads.members)
        self._gained = view.capacity.gained

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: the first job lacks room, all others stand behind it."""
        first = inquiry.queue[0]
        why = inquiry.lacks(first)
        return why if job is first or why is None else inquiry.behind(job, first, why)


class Greedy:
    """In order, starting whatever fits."""

    def __init__(self) -> None:
        self._blocked: dict[PendingClass, None] = {}
        self._gained = -1

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        capacity = view.capacity
        if self._gained != capacity.gained:
            classes = dict.fromkeys((*self._blocked, *view.fresh()))
            self._blocked = {}
        else:
            classes = dict.fromkeys(members for members in view.fresh() if members not in self._blocked)
        if not classes:
            return
        if not ordering.stable:
            ordering.refresh(view)
        heads = Heads(view, ordering, classes)
        while capacity.free_milli and (job := heads.first()) is not None:
            members = heads.members
            allocation = placement.find(capacity, members.request, relaxed=members.relaxed)
            if allocation is None:
                heads.drop()
            else:
                view.start(job, allocation)
                heads.advance()
        self._blocked.update(dict.fromkeys((*heads.dropped, *heads.left())))
        self._gained = capacity.gained

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: whoever has room starts."""
        return inquiry.lacks(job)


class Easy(InOrder):
    """EASY backfill: the first blocked job is promised the earliest instant at which the
    expected ends of running jobs make room for it. A later job may start if it is
    expected to end by then, or uses only GPUs that are left over at that instant."""

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        heads = self.heads(view, ordering)
        head = self.start(view, heads, placement)
        if head is None:
            return
        blocked = heads.members
        jobs = self._with_room(view, placement, head)
        if jobs:
            shadow, _, later = reservation(view, head, blocked.relaxed, placement)
            self._backfill(view, placement, jobs, shadow, later)

    @staticmethod
    def _with_room(
        view: ClusterView, placement: Placement, head: JobView
    ) -> list[tuple[int, JobView, PendingClass]]:
        """Jobs for which there is room now, by key, with their classes."""
        capacity = view.capacity
        jobs = [
            (job.pending_key, job, members)
            for members in view.pending_classes
            if placement.find(capacity, members.request, relaxed=members.relaxed) is not None
            for job in members.ordered()
            if job is not head
        ]
        jobs.sort(key=_first)
        return jobs

    @staticmethod
    def _backfill(
        view: ClusterView,
        placement: Placement,
        jobs: list[tuple[int, JobView, PendingClass]],
        shadow: int,
        later: CapacityView,
    ) -> None:
        """Start those that end before the reservation, or leave room for it."""
        capacity, now = view.capacity, view.now
        # Room only shrinks in here: what one job of a class doesn't find none of them finds.
        no_room: set[PendingClass] = set()
        none_besides: set[PendingClass] = set()
        for _, job, members in jobs:
            if members in no_room:
                continue
            if job.expected_end(now) <= shadow:
                allocation = placement.find(capacity, members.request, relaxed=members.relaxed)
                if allocation is None:
                    no_room.add(members)
                else:
                    view.start(job, allocation)
            elif members not in none_besides:
                both = find_in_both(capacity, later, job, members.relaxed, placement)
                if both is None:
                    none_besides.add(members)
                else:
                    view.start(job, both[0])
                    later.take(both[1])

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: who has room waits for the promise made to the first."""
        view, head = inquiry.view, inquiry.queue[0]
        lack = inquiry.lacks(job)
        if job is not head and lack is not None:
            return lack
        if "reservation" not in inquiry.known:
            relaxed = view.relaxed(head)
            inquiry.known["reservation"] = reservation(view, head, relaxed, inquiry.placement)
        at, allocation, _ = inquiry.known["reservation"]
        if job is not head:
            return promised(inquiry, job, head, at)
        return lack if lack is None or allocation is None else awaiting(inquiry, lack, at)


def _first(entry: tuple[int, JobView, PendingClass]) -> int:
    return entry[0]


class Conservative:
    """Conservative backfill: every waiting job, in order, gets the earliest reservation
    that delays none before it, and starts when that is now.

    Reservations count free GPUs; whether a gang finds its nodes is asked when it starts.

    Args:
        depth: how many waiting jobs get a reservation; those behind them wait.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        jobs = self._first(view, ordering)
        smallest = min((job.gpus for job, _ in jobs), default=0)
        if not jobs or smallest > view.capacity.free_milli:
            return
        profile = Profile(view)
        for job, relaxed in jobs:
            if profile.free_now < smallest:
                return
            length = max(1, job.remaining(view.now))
            at = profile.earliest(job.gpus, length)
            if at == view.now:
                allocation = placement.find(view.capacity, job.job.request, relaxed=relaxed)
                if allocation is not None:
                    view.start(job, allocation)
                else:
                    # Enough GPUs, but scattered: hope for the next release.
                    at = profile.next_release()
            if at is not None:
                profile.reserve(job.gpus, at, at + length)

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: who has room waits for its own reservation."""
        view = inquiry.view
        if "reservations" not in inquiry.known:
            inquiry.known["reservations"] = self._reservations(view, inquiry.ordering)
        reservations: dict[JobView, int | None] = inquiry.known["reservations"]
        if job not in reservations:
            return inquiry.too_far_back(job, self.depth)
        at, lack = reservations[job], inquiry.lacks(job)
        if at is None:
            return lack
        return promised(inquiry, job, None, at) if lack is None else awaiting(inquiry, lack, at)

    def _reservations(self, view: ClusterView, ordering: Ordering) -> dict[JobView, int | None]:
        """When the GPUs of each job are reserved; None = never."""
        profile = Profile(view)
        found: dict[JobView, int | None] = {}
        for job, _ in self._first(view, ordering):
            length = max(1, job.remaining(view.now))
            at = profile.earliest(job.gpus, length)
            if at == view.now:
                at = profile.next_release()
            if at is not None:
                profile.reserve(job.gpus, at, at + length)
            found[job] = at
        return found

    def _first(self, view: ClusterView, ordering: Ordering) -> list[tuple[JobView, bool]]:
        """(job, whether it is relaxed), as many as get a reservation."""
        merged = Merged(view, ordering)
        jobs: list[tuple[JobView, bool]] = []
        while merged.key is not None and len(jobs) < self.depth:
            jobs.append((merged.job, merged.relaxed))
            merged.advance()
        return jobs


class Profile:
    """Expected free milli-GPUs over time, as steps that begin at growing instants."""

    def __init__(self, view: ClusterView) -> None:
        now = view.now
        released: dict[int, int] = {}
        for job in view.holders:
            end = max(job.expected_end(now), now + 1)
            released[end] = released.get(end, 0) + job.gpus
        self._times = [now, *sorted(released)]
        gains = [view.capacity.free_milli, *(released[at] for at in self._times[1:])]
        self._free = list(accumulate(gains))

    @property
    def free_now(self) -> int:
        """Milli-GPUs that are free now and not reserved."""
        return self._free[0]

    def earliest(self, gpus: int, length: int) -> int | None:
        """First instant from which `gpus` stay free for `length` ns; None = never (nodes
        are down)."""
        times, free = self._times, self._free
        steps = len(times)
        first = 0
        while first < steps:
            end = times[first] + length
            step = first
            while step < steps and times[step] < end and free[step] >= gpus:
                step += 1
            if step == steps or times[step] >= end:
                return times[first]
            first = step + 1
        return None

    def next_release(self) -> int | None:
        """The first instant after now at which GPUs are released."""
        return self._times[1] if len(self._times) > 1 else None

    def reserve(self, gpus: int, begin: int, end: int) -> None:
        """Take `gpus` out during [begin, end)."""
        first, last = self._split(begin), self._split(end)
        for step in range(first, last):
            self._free[step] -= gpus

    def _split(self, at: int) -> int:
        """Index of the step that begins at `at`, made if there is none."""
        index = bisect_left(self._times, at)
        if index == len(self._times) or self._times[index] != at:
            self._times.insert(index, at)
            self._free.insert(index, self._free[index - 1])
        return index


def reservation(
    view: ClusterView, head: JobView, relaxed: bool, placement: Placement
) -> tuple[int, Allocation | None, CapacityView]:
    """When `head` will find room by the expected ends of running jobs, where, and what is free
    then besides it. Where = None: not even on the empty cluster (nodes are down)."""
    later = view.capacity.copy()
    now = view.now
    # A heap, since the first few ends are often enough.
    ends = [(job.expected_end(now), job.job.sequence, job.allocation) for job in view.holders]
    heapify(ends)
    request = head.job.request
    while ends:
        at, _, allocation = heappop(ends)
        assert allocation is not None
        later.give(allocation)
        if later.free_milli < request.gpus or (ends and ends[0][0] == at):
            continue
        found = placement.find(later, request, relaxed=relaxed)
        if found is not None:
            later.take(found)
            return at, found, later
    # Nothing can delay a job that no end makes room for.
    return now, None, later


def find_in_both(
    capacity: CapacityView, later: CapacityView, job: JobView, relaxed: bool, placement: Placement
) -> tuple[Allocation, Allocation] | None:
    """GPUs that are free now, and as many on the same nodes that are left over at the
    reservation: which devices of a node they are doesn't matter."""
    nodes, whole = EVERYWHERE, job.gpus % GPU == 0
    while True:
        allocation = placement.find(capacity, job.job.request, relaxed=relaxed, nodes=nodes)
        if allocation is None:
            return None
        shares = [left_over(later, share, whole) for share in allocation.shares]
        then = Allocation.of([share for share in shares if share is not None])
        if None not in shares and later.fits(then):
            return allocation, then
        missing = [old.node for old, new in zip(allocation.shares, shares, strict=True) if new is None]
        for node in missing or allocation.nodes:
            nodes &= ~(1 << node)


def left_over(later: CapacityView, share: Share, whole: bool) -> Share | None:
    """These GPUs, or else (of a gang of whole ones) as many others of their node, if they are
    free at the reservation."""
    if later.fits(Allocation.of([share])):
        return share
    count = share.milli // GPU
    if not whole or later.free_on(share.node) < count:
        return None
    return Share(share.node, lowest_devices(later.free[share.node], count), share.milli)
