"""The walk through the queue that makes running jobs on nodes give way.

A job that finds no room takes the place of the fewest, weakest jobs on the node (or nodes)
that need the least; victims that turn out superfluous are given back.
"""

from __future__ import annotations

from collections.abc import Collection

from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.job import Request
from trainmaster.model.ports import ANYBODY, CapacityView, ClusterView, JobView, Ordering, PendingClass
from trainmaster.model.reason import Reason
from trainmaster.model.units import GPU
from trainmaster.policies.parts.giving_way import by_key
from trainmaster.policies.parts.placement import Placement
from trainmaster.policies.parts.queue import Heads
from trainmaster.policies.parts.reasons import Inquiry
from trainmaster.policies.parts.room import needed
from trainmaster.policies.parts.victims import VictimIndex, Victims, allocation_of


class Evict:
    """Fewest, weakest victims, by node.

    A class that found no room is not tried again before its first job changes or a node that
    improved could help it: with time alone, waiting jobs never gain on running ones.
    """

    def __init__(self) -> None:
        self._index = VictimIndex()
        self._blocked: dict[PendingClass, JobView] = {}
        self._needs = Needs()

    def plan(self, view: ClusterView, ordering: Ordering, placement: Placement) -> None:
        """See `Walk`."""
        fresh = view.fresh()
        if not self._blocked and not fresh:
            return
        improved = self._index.begin(view, ordering)
        self._needs.begin(view.capacity)
        # Under spread a gang takes its GPUs from any nodes, one here and one there.
        if ordering.stable and placement.name == "pack":
            blocked = self._still_blocked(view, ordering, improved)
            classes = [members for members in (*self._blocked, *fresh) if members not in blocked]
        else:
            blocked, classes = {}, list(view.pending_classes)
        if not classes:
            return
        heads = Heads(view, ordering, classes)
        heads.dropped = blocked
        self._walk(view, ordering, placement, heads)
        self._blocked = heads.dropped
        self._wake(view, ordering)

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """See `Explains`: those who hold the GPUs come first, or may not be stopped."""
        return by_key(inquiry, job)

    def _walk(self, view: ClusterView, ordering: Ordering, placement: Placement, heads: Heads) -> None:
        mark = view.mark()
        starts: list[JobView] = []
        stops: list[JobView] = []
        spare = False
        while (job := heads.first()) is not None:
            members = heads.members
            allocation = placement.find(view.capacity, members.request, relaxed=members.relaxed)
            victims: list[JobView] = []
            if allocation is None:
                allocation, victims = self._displace(view, ordering, placement, job, members)
            if allocation is None:
                heads.drop()
                continue
            view.start(job, allocation)
            self._index.refresh()
            heads.advance()
            starts.append(job)
            if not victims:
                continue
            if not ordering.stable:
                heads.rank()
            surplus = _left_over(victims, allocation)
            if surplus:
                spare = spare or bool(stops)
                self._restore(view, ordering, placement, heads, surplus)
            stops += victims
        if spare:
            self._spare(view, placement, starts, stops, mark)

    def _spare(
        self, view: ClusterView, placement: Placement, starts: list[JobView], stops: list[JobView], mark: int
    ) -> None:
        """Take back the stops that later ones made needless, the strongest first."""
        trial = view.capacity.copy()
        for job in starts:
            trial.give(allocation_of(job))
        places: list[Allocation] | None = None
        spared: list[JobView] = []
        for victim in sorted(stops, key=lambda job: job.running_key):
            if trial.fits(allocation_of(victim)):
                attempt = trial.copy()
                attempt.take(allocation_of(victim))
                found = _places(attempt, placement, starts)
                if found is not None:
                    places = found
                    spared.append(victim)
                    trial.take(allocation_of(victim))
        if places is None:
            return
        view.undo(mark)
        for victim in stops:
            if victim not in spared:
                view.preempt(victim)
        for job, allocation in zip(starts, places, strict=True):
            view.start(job, allocation)
        self._index.refresh()

    def _restore(
        self,
        view: ClusterView,
        ordering: Ordering,
        placement: Placement,
        heads: Heads,
        surplus: list[int],
    ) -> None:
        """GPUs on these nodes became free beyond what was needed: who was dropped may find room."""
        every = not ordering.stable or placement.name != "pack"
        nodes = [self._index.on(node) for node in surplus]
        for members, head in tuple(heads.dropped.items()):
            if every or self._helps(members, ordering.challenge(head, view.now), nodes):
                heads.restore(members)

    def _wake(self, view: ClusterView, ordering: Ordering) -> None:
        """Ask again when a weaker job than a blocked one loses its protection."""
        strongest: int | None = None
        if not ordering.stable and self._blocked:
            strongest = ANYBODY
        elif self._blocked:
            now, challenge = view.now, ordering.challenge
            strongest = min([challenge(job, now) for job in self._blocked.values()])
        view.wake_on_release(strongest)

    def _still_blocked(
        self, view: ClusterView, ordering: Ordering, improved: set[int]
    ) -> dict[PendingClass, JobView]:
        """Classes that found no room last time and find none now."""
        nodes = [self._index.on(node) for node in improved]
        now = view.now
        blocked = {}
        for members, head in self._blocked.items():
            if members.head() is not head:
                continue
            if not nodes or not self._helps(members, ordering.challenge(head, now), nodes):
                blocked[members] = head
        return blocked

    def _helps(self, members: PendingClass, challenge: int, nodes: list[Victims]) -> bool:
        """Whether one of the nodes could take the class's first job, or a part of it."""
        if members.relaxed:
            return True
        for part in self._needs.parts(members):
            for victims in nodes:
                if victims.offers(part, challenge):
                    return True
        return False

    # -- choosing victims ---------------------------------------------------------------------

    def _displace(
        self, view: ClusterView, ordering: Ordering, placement: Placement, job: JobView, members: PendingClass
    ) -> tuple[Allocation | None, list[JobView]]:
        """Stop the victims that make room for `job`, if there are any such.

        Returns the allocation, and the victims.
        """
        request, capacity = members.request, view.capacity
        challenge = ordering.challenge(job, view.now)
        eligible = capacity.eligible(request)
        places = (
            [eligible & place for place in capacity.domains(request.within)] if request.within else [eligible]
        )
        for nodes in places:
            victims = self._victims(view, placement, request, challenge, nodes) if nodes else []
            if victims:
                break
        else:
            return None, []
        for victim in victims:
            view.preempt(victim)
        allocation = placement.find(capacity, request)
        assert allocation is not None, "the victims don't make room"
        return allocation, victims

    def _victims(
        self, view: ClusterView, placement: Placement, request: Request, challenge: int, eligible: int
    ) -> list[JobView]:
        """The jobs that must go so that there is room on the eligible nodes; none = there is no such way."""
        capacity = view.capacity
        need, fraction = divmod(request.gpus, GPU)
        if fraction and not (need and capacity.shared_device(fraction, eligible)):
            need += 1
        if request.pods is not None:
            needs = self._pods(view, request, challenge, eligible)
        elif need <= capacity.largest_node:
            needs = dict.fromkeys(self._index.weakest(need, challenge, eligible, 1), need)
        else:
            needs = self._several(view, need, challenge, eligible)
        if not needs and placement.name == "spread" and request.pods is None:
            needs = self._anywhere(view, need, challenge, eligible)
        victims = self._enough(view, needs, challenge)
        if len(victims) == 1 == len(needs):
            return victims
        return _needed(capacity, placement, request, victims)

    def _several(self, view: ClusterView, need: int, challenge: int, eligible: int) -> dict[int, int]:
        """Whole nodes, the largest first, and a remainder: GPUs needed by node, or nothing."""
        capacity = view.capacity
        needs: dict[int, int] = {}
        for size, nodes in self._needs.by_size:
            count = need // size
            if not count:
                continue
            nodes &= eligible
            chosen = bits(capacity.whole & nodes)[:count]
            if len(chosen) < count:
                others = nodes & ~_mask(chosen)
                chosen += self._index.weakest(size, challenge, others, count - len(chosen))
            needs.update(dict.fromkeys(chosen, size))
            need -= size * len(chosen)
        if not need:
            return needs
        others = eligible & ~_mask(list(needs))
        room = (
            node
            for free in range(need, capacity.largest_node + 1)
            for node in bits(capacity.with_free[free] & others)
        )
        node = next(room, None)
        last = [node] if node is not None else self._index.weakest(need, challenge, others, 1)
        return {**needs, last[0]: need} if last else {}

    def _anywhere(self, view: ClusterView, need: int, challenge: int, eligible: int) -> dict[int, int]:
        """GPUs needed by node, if the gang takes them one here and one there: the weakest."""
        capacity = view.capacity
        needs = {node: capacity.free_on(node) for node in bits(eligible)}
        need -= sum(needs.values())
        victims = [
            (key, job.job.sequence, node, gain)
            for node in needs
            for key, job, gain in self._index.on(node).jobs
            if key > challenge
        ]
        for _, _, node, gain in sorted(victims, reverse=True):
            if need <= 0:
                break
            needs[node] += gain
            need -= gain
        return {} if need > 0 else needs

    def _pods(self, view: ClusterView, request: Request, challenge: int, eligible: int) -> dict[int, int]:
        """GPUs needed by node where room for the pods costs the weakest jobs, or nothing."""
        assert request.pods is not None
        size = -(-request.pod // GPU)
        rooms: list[tuple[int, int]] = []
        for node in bits(eligible):
            victims = self._index.on(node)
            for count in range(1, request.pods + 1):
                weakest = victims.cost(size * count)
                if weakest is None or weakest <= challenge:
                    break
                rooms.append((-weakest, node))
        if len(rooms) < request.pods:
            return {}
        needs: dict[int, int] = {}
        for _, node in sorted(rooms)[: request.pods]:
            needs[node] = needs.get(node, 0) + size
        return needs

    def _enough(self, view: ClusterView, needs: dict[int, int], challenge: int) -> list[JobView]:
        """Victims that free `needs`, weakest first."""
        free = {node: view.capacity.free_on(node) for node in needs}
        chosen: dict[JobView, int] = {}
        for node, need in needs.items():
            for key, job, _ in self._index.on(node).jobs:
                if free[node] >= need or key <= challenge:
                    break
                if job not in chosen:
                    chosen[job] = key
                    for where, gain in _gains(job, free):
                        free[where] += gain
        return sorted(chosen, key=chosen.__getitem__, reverse=True)


class Needs:
    """What classes need on single nodes.

    Attributes:
        by_size: (GPUs, mask of the nodes that have so many), the largest first.
    """

    def __init__(self) -> None:
        self.by_size: list[tuple[int, int]] = []
        self._largest = -1
        self._parts: dict[PendingClass, tuple[int, ...]] = {}

    def begin(self, capacity: CapacityView) -> None:
        """Take up a change of the largest healthy node."""
        if capacity.largest_node == self._largest:
            return
        self._largest = capacity.largest_node
        masks: dict[int, int] = {}
        for node, size in enumerate(capacity.size):
            masks[size] = masks.get(size, 0) | 1 << node
        self.by_size = sorted(masks.items(), reverse=True)
        self._parts.clear()

    def parts(self, members: PendingClass) -> tuple[int, ...]:
        """Whole GPUs that the class needs on a node: its size, or whole nodes and a
        remainder. 0 = it can't be told, any node may help."""
        parts = self._parts.get(members)
        if parts is None:
            largest = self._largest
            request = members.request
            gpus, fraction = divmod(request.pod, GPU)
            if fraction or (gpus > largest and not request.pods and (len(self.by_size) > 1 or not largest)):
                parts = (0,)
            elif request.pods is not None or gpus <= largest:
                parts = (gpus,)
            else:
                parts = (largest, gpus % largest or largest)
            self._parts[members] = parts
        return parts


def _places(capacity: CapacityView, placement: Placement, jobs: list[JobView]) -> list[Allocation] | None:
    """Room for all of the jobs, one after the other; it is taken."""
    places = []
    for job in jobs:
        allocation = placement.find(capacity, job.job.request)
        if allocation is None:
            return None
        capacity.take(allocation)
        places.append(allocation)
    return places


def _left_over(victims: list[JobView], allocation: Allocation) -> list[int]:
    """Nodes on which the victims give up more GPUs, or other ones, than `allocation` takes."""
    milli: dict[int, int] = {}
    devices: dict[int, int] = {}
    for victim in victims:
        for share in allocation_of(victim).shares:
            milli[share.node] = milli.get(share.node, 0) + share.milli
            devices[share.node] = devices.get(share.node, 0) | share.devices
    for share in allocation.shares:
        if share.node in milli:
            milli[share.node] -= share.milli
            devices[share.node] &= ~share.devices
    return [node for node in milli if milli[node] > 0 or devices[node]]


def _mask(nodes: list[int]) -> int:
    return sum(1 << node for node in nodes)


def _gains(job: JobView, nodes: Collection[int]) -> list[tuple[int, int]]:
    """(node, whole GPUs that the job holds there), for those of the given nodes."""
    return [(share.node, share.milli // GPU) for share in allocation_of(job).shares if share.node in nodes]


def _needed(
    capacity: CapacityView, placement: Placement, request: Request, victims: list[JobView]
) -> list[JobView]:
    """Those of the victims, weakest first, without whom there is no room; none if there is no
    room even without all of them."""
    trial = capacity.copy()
    for victim in victims:
        trial.give(allocation_of(victim))
    return [] if placement.find(trial, request) is None else needed(trial, placement, request, victims)
