"""Why a job waits, as far as all policies have it in common: shape, room, and place in the queue.

An `Inquiry` answers the questions of one instant, each once. Walks ask it and add what only
they know: whom a job stands behind, what is promised, who gives way.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from trainmaster.model.allocation import Allocation, bits
from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView, JobView, Ordering
from trainmaster.model.reason import Glance, Level, Reason
from trainmaster.model.units import GPU, to_gpus
from trainmaster.policies.parts import reason_words as words
from trainmaster.policies.parts.admission import Quotas
from trainmaster.policies.parts.placement import EVERYWHERE, Placement
from trainmaster.policies.parts.runners import Runners
from trainmaster.policies.parts.victims import allocation_of

ANY = Request(0)
"""Asks nothing of nodes."""


class Explains(Protocol):
    """A walk that says why it leaves a job waiting."""

    def explain(self, inquiry: Inquiry, job: JobView) -> Reason | None:
        """Why the job waits after a decision; None = nothing speaks against it."""
        ...


@dataclass(frozen=True, slots=True)
class Free:
    """Free GPUs on some nodes.

    Args:
        milli: milli-GPUs, whole ones only where nodes tell devices apart.
        nodes: how many nodes have some.
        most: milli-GPUs on the node that has most.
        total: milli-GPUs of the nodes, free or not.
    """

    milli: int
    nodes: int
    most: int
    total: int


class Inquiry:
    """What is asked at one instant.

    Args:
        view, ordering, placement: as for a decision; none of them changes.
        relax: whether jobs accept any nodes some day.

    Attributes:
        view, placement: as given.
        ordering: a copy, its keys up to date.
    """

    def __init__(self, view: Glance, ordering: Ordering, placement: Placement, *, relax: bool) -> None:
        self.view = view
        self.placement = placement
        self._relax = relax
        self.ordering = ordering
        if not ordering.stable:
            self.ordering = copy.copy(ordering)
            self.ordering.refresh(view)
        self.pooled = placement.name == "pool"
        self._rooms: dict[tuple[Request, bool, int], Allocation | None] = {}
        self._lacks: dict[tuple[Request, bool], Reason | None] = {}
        self._never: dict[Request, Reason | None] = {}
        self._largest: dict[int, int] = {}
        # What walks worked out, under keys of their own.
        self.known: dict[object, Any] = {}

    # -- what is shared ---------------------------------------------------------------------

    @cached_property
    def idle(self) -> CapacityView:
        """What would be free if nothing ran, on the nodes that take jobs now."""
        trial = self.view.capacity.copy()
        for job in self.view.holders:
            trial.give(allocation_of(job))
        return trial

    @cached_property
    def queue(self) -> list[JobView]:
        """All waiting jobs in order of their pending keys."""
        jobs = [job for members in self.view.pending_classes for job in members]
        return sorted(jobs, key=lambda job: job.pending_key)

    @cached_property
    def places(self) -> dict[JobView, int]:
        """Places in the queue, from 1."""
        return {job: place for place, job in enumerate(self.queue, 1)}

    @cached_property
    def own_places(self) -> dict[JobView, int]:
        """Places in the queue of the job's own tenant, from 1."""
        counts: dict[str, int] = {}
        found = {}
        for job in self.queue:
            found[job] = counts[job.job.tenant] = counts.get(job.job.tenant, 0) + 1
        return found

    @cached_property
    def quotas(self) -> Quotas:
        """What queues hold and may hold."""
        quotas = Quotas()
        quotas.begin(self.view)
        return quotas

    @cached_property
    def runners(self) -> Runners:
        """Who runs, in order of who gives way."""
        return Runners(self.view, self.ordering, self.pooled)

    @cached_property
    def up(self) -> int:
        """Mask of the nodes that take jobs."""
        return self.view.capacity.eligible(ANY)

    # -- room ---------------------------------------------------------------------------------

    def room(self, job: JobView, nodes: int = EVERYWHERE) -> Allocation | None:
        """Where the job would go now."""
        return self._room(job.job.request, self.view.relaxed(job), nodes)

    def _room(self, request: Request, relaxed: bool, nodes: int = EVERYWHERE) -> Allocation | None:
        key = (request, relaxed, nodes)
        if key not in self._rooms:
            self._rooms[key] = self.placement.find(self.view.capacity, request, relaxed=relaxed, nodes=nodes)
        return self._rooms[key]

    def together(self, request: Request, relaxed: bool = False) -> bool:
        """Whether all of it has to be free in one place: on a node, or anywhere in a pool."""
        if self.pooled or request.gpus <= GPU:
            return True
        if request.pods is not None:
            return request.pods == 1
        if self.placement.name != "pack" or relaxed:
            return False
        nodes = self.view.empty.eligible(request)
        if nodes not in self._largest:
            self._largest[nodes] = max((self.view.empty.size[node] for node in bits(nodes)), default=0)
        return request.gpus <= self._largest[nodes] * GPU

    def on_one(self, request: Request, relaxed: bool) -> bool:
        """Whether it is worth saying that all of it goes to one node."""
        if self.pooled or len(self.view.cluster.nodes) == 1 or request.gpus <= GPU:
            return False
        return self.together(request, relaxed)

    def asks(self, request: Request, relaxed: bool = False) -> str:
        """What the job asks, in words."""
        if self.pooled:
            request = Request(request.gpus)
        return words.asks(request, on_one=self.on_one(request, relaxed))

    def free(self, nodes: int) -> Free:
        """What is free on the nodes of a mask."""
        capacity = self.view.capacity
        if self.pooled:
            free = capacity.free_milli
            return Free(free, int(free > 0), free, self.view.cluster.gpus * GPU)
        milli = found = most = 0
        for gpus in range(1, capacity.largest_node + 1):
            here = (capacity.with_free[gpus] & nodes).bit_count()
            if here:
                milli, found, most = milli + gpus * here * GPU, found + here, gpus * GPU
        return Free(milli, found, most, sum(capacity.size[node] for node in bits(nodes)) * GPU)

    # -- never ----------------------------------------------------------------------------------

    def never(self, job: JobView) -> Reason | None:
        """Why not even the empty cluster could take the job; None = it could."""
        request = job.job.request
        if request not in self._never:
            found = self.placement.find(self.view.empty, request, relaxed=self._relax)
            self._never[request] = None if found is not None else self._impossible(request)
        return self._never[request]

    def _impossible(self, request: Request) -> Reason:
        empty = self.view.empty
        nodes = empty.eligible(request)
        if not nodes:
            return self._no_such_node(request)
        total = sum(empty.size[node] for node in bits(nodes)) * GPU
        largest = max(empty.size[node] for node in bits(nodes)) * GPU
        numbers = {"asked_gpus": request.gpus, "cluster_gpus": total, "largest_node_gpus": largest}
        asked = self.asks(request)
        whose = f" with GPUs{words.of_types(request.gpu_types)}" if request.gpu_types else ""
        if request.labels:
            whose += f" with {words.labels(request.labels)}"
        if request.gpus > total:
            known = f"the nodes{whose} have" if whose else "the cluster has"
            why = f"{known} {words.gpus(total)}"
        elif not self.pooled and request.pods is not None and request.pod > largest:
            why = f"the largest node{whose} has {words.gpus(largest)}"
        elif request.within:
            places = [place & nodes for place in empty.domains(request.within)]
            most = max((sum(empty.size[n] for n in bits(place)) * GPU for place in places), default=0)
            numbers["largest_place_gpus"] = most
            why = f"the largest {request.within} has {words.gpus(most)}"
        else:
            why = f"even the empty nodes{whose} have no room for that"
        return Reason(Level.NEVER_FITS, f"never fits: it asks {asked}, and {why}", numbers, permanent=True)

    def _no_such_node(self, request: Request) -> Reason:
        cluster, empty = self.view.cluster, self.view.empty
        numbers = {"asked_gpus": request.gpus, "nodes": 0}
        if not empty.eligible(Request(request.gpus, request.gpu_types)):
            types = " or ".join(request.gpu_types)
            known = sorted({node.gpu_type for node in cluster.nodes if node.gpu_type})
            names = {"gpu_types": types}
            text = f"no node offers {types}; there is {words.names(known)}"
            return Reason(Level.GPU_TYPE, text, numbers, names, permanent=True)
        labels = words.labels(request.labels)
        also = f" and GPUs{words.of_types(request.gpu_types)}" if request.gpu_types else ""
        text = f"no node has {labels}{also}"
        return Reason(Level.LABELS, text, numbers, {"labels": labels}, permanent=True)

    # -- no room now ------------------------------------------------------------------------------

    def lacks(self, job: JobView) -> Reason | None:
        """What is lacking so that there were room for the job now; None = there is room."""
        key = (job.job.request, self.view.relaxed(job))
        if key not in self._lacks:
            room = self._room(*key)
            self._lacks[key] = None if room is not None else self.never(job) or self._lack(*key)
        return self._lacks[key]

    def _lack(self, request: Request, relaxed: bool) -> Reason:
        nodes = self.view.capacity.eligible(request)
        free = self.free(nodes)
        asked = f"waits for {self.asks(request, relaxed)}"
        numbers = {
            "asked_gpus": request.gpus,
            "free_gpus": free.milli,
            "nodes_with_free": free.nodes,
            "most_on_one_gpus": free.most,
        }
        return (
            self._ill(request, relaxed, asked, numbers)
            or self._picky(request, relaxed, asked, numbers, free)
            or self._gang(request, asked, numbers, free)
            or self._too_few(request, asked, numbers, free)
            or self._scattered(request, relaxed, asked, numbers, free, nodes)
        )

    def _ill(self, request: Request, relaxed: bool, asked: str, numbers: Mapping[str, int]) -> Reason | None:
        """Nodes that take no jobs."""
        empty = self.view.empty
        down = [node for node in bits(empty.eligible(request)) if not self.up >> node & 1]
        if not down or self.placement.find(self.idle, request, relaxed=relaxed) is not None:
            return None
        which = words.node_names(self.view.cluster, down)
        are = "is" if len(down) == 1 else "are"
        text = f"{asked}; {which} {are} down or drained, and no other nodes could take it"
        return Reason(Level.HEALTH, text, {**numbers, "nodes_down": len(down)}, {"nodes": which})

    def _picky(
        self, request: Request, relaxed: bool, asked: str, numbers: Mapping[str, int], free: Free
    ) -> Reason | None:
        """There is room where the job does not want to go."""
        if self.pooled:
            return None
        if request.within and self._room(replace(request, within=""), relaxed) is not None:
            nodes = self.view.capacity.eligible(request)
            places = [self.free(place & nodes).milli for place in self.view.capacity.domains(request.within)]
            most = max(places, default=0)
            text = (
                f"{asked}; {words.free(free.milli)}, at most {words.gpus(most)} within one {request.within}"
            )
            more = {**numbers, "most_in_one_place_gpus": most}
            return Reason(Level.TOPOLOGY, text, more, {"level": request.within})
        if free.milli >= request.gpus:
            return None
        others = self.free(self.up).milli - free.milli
        more = {**numbers, "free_elsewhere_gpus": others}
        are = "is" if others <= GPU else "are"
        if request.gpu_types and self._room(replace(request, gpu_types=()), relaxed) is not None:
            text = f"{asked}; of those {words.free(free.milli)}, of other types {words.gpus(others)} {are}"
            return Reason(Level.GPU_TYPE, text, more, {"gpu_types": " or ".join(request.gpu_types)})
        if request.labels and self._room(replace(request, labels=()), relaxed) is not None:
            text = f"{asked}; there {words.free(free.milli)}, on other nodes {words.gpus(others)} {are}"
            return Reason(Level.LABELS, text, more, {"labels": words.labels(request.labels)})
        return None

    def _gang(self, request: Request, asked: str, numbers: dict[str, int], free: Free) -> Reason | None:
        """Some of its pods would fit."""
        pods = request.pods
        if self.pooled or pods is None or pods < 2:
            return None
        fitting = self._fitting(request, pods)
        numbers.update(pods=pods, pods_fitting=fitting)
        fit = f"{fitting} of {pods} pods {'fits' if fitting == 1 else 'fit'}"
        milli = free.milli
        if milli >= request.gpus:
            text = f"{asked}, and what is free is fragmented: {fit} although {words.gpus(milli)} are free"
            return Reason(Level.FRAGMENTATION, text, numbers)
        if fitting:
            text = f"{asked} at once; {words.free(milli)}: {fit}, and a gang starts whole"
            return Reason(Level.GANG, text, numbers)
        return None

    def _fitting(self, request: Request, pods: int) -> int:
        """How many of the pods find room."""
        low, high = 0, pods
        while low < high:
            middle = (low + high + 1) // 2
            some = replace(request, gpus=request.pod * middle, pods=middle)
            if self._room(some, False) is not None:
                low = middle
            else:
                high = middle - 1
        return low

    def _too_few(self, request: Request, asked: str, numbers: Mapping[str, int], free: Free) -> Reason | None:
        """Not so many GPUs are free."""
        if request.gpus < GPU:
            text = f"{asked}; no GPU has so much left"
        elif free.milli < request.gpus:
            types = "" if self.pooled else words.of_types(request.gpu_types)
            if free.milli:
                text = f"{asked}; {to_gpus(free.milli)} of {words.gpus(free.total)}{types} "
                text += "is free" if free.milli <= GPU else "are free"
            elif free.total == GPU:
                text = f"{asked}; the only GPU{types} is in use"
            else:
                text = f"{asked}; all {words.gpus(free.total)}{types} are in use"
        else:
            return None
        return Reason(Level.CAPACITY, text, {**numbers, "cluster_gpus": free.total})

    def _scattered(
        self,
        request: Request,
        relaxed: bool,
        asked: str,
        numbers: Mapping[str, int],
        free: Free,
        nodes: int,
    ) -> Reason:
        """Enough GPUs are free, not where it needs them."""
        size, capacity = self.view.capacity.size, self.view.capacity
        one = self.on_one(request, relaxed)
        large = [node for node in bits(nodes) if size[node] * GPU >= request.gpus] if one else []
        if one and len(large) < nodes.bit_count():
            here = self.free(sum(1 << node for node in large))
            if here.milli < request.gpus:
                only = words.node_names(self.view.cluster, large)
                most = words.gpus(here.most) if here.most else "none"
                text = (
                    f"{asked}; only {only} {'has' if len(large) == 1 else 'have'} so many, {most} free there"
                )
                text += " at most" if len(large) > 1 else ""
                return Reason(Level.NODE_SHAPE, text, {**numbers, "nodes_large_enough": len(large)})
        text = f"{asked}, and what is free is fragmented: {words.gpus(free.milli)} are free on "
        text += f"{words.count(free.nodes, 'node')}, at most {to_gpus(free.most)} on one"
        if not one:
            whole = (capacity.whole & nodes).bit_count()
            numbers = {**numbers, "nodes_wholly_free": whole}
            text += f", {words.count(whole, 'node') if whole else 'no node'} wholly free"
        return Reason(Level.FRAGMENTATION, text, numbers)

    # -- order ------------------------------------------------------------------------------------

    def behind(self, job: JobView, first: JobView, why: Reason, *, of_tenant: bool = False) -> Reason:
        """The job stands behind another that has to start first, which waits for `why`.

        Args:
            of_tenant: whether each tenant has a queue of its own.
        """
        place = (self.own_places if of_tenant else self.places)[job]
        own = f"; it is {words.ordinal(place)} in {'its' if of_tenant else 'the'} queue"
        text = f"stands behind {first.job.id}, which {why.sentence}{own}"
        return Reason(Level.ORDER, text, {"place": place}, {"behind": first.job.id}, own=own)

    def too_far_back(self, job: JobView, depth: int) -> Reason:
        """Only so many of the first waiting jobs are considered."""
        place = self.places[job]
        own = f"; it is {words.ordinal(place)} in the queue"
        text = f"is not considered yet: only the first {depth} of the queue are{own}"
        return Reason(Level.ORDER, text, {"place": place, "considered_jobs": depth}, own=own)
