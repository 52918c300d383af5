"""Placement: which GPUs. Finds free GPUs for a gang, or says that there are none.

Ties go to the lowest node index. `relaxed` drops the node rules: any free GPUs will do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from trainmaster.model.allocation import Allocation, Share, bits, lowest_devices
from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView
from trainmaster.model.units import GPU

EVERYWHERE = -1
"""The mask of all nodes."""


class Placement(Protocol):
    """Finds GPUs for a gang."""

    name: str

    def find(
        self, capacity: CapacityView, request: Request, *, relaxed: bool = False, nodes: int = EVERYWHERE
    ) -> Allocation | None:
        """Free GPUs for `request` on the nodes in the mask, or None."""
        ...


class Pool:
    """Only the total number of GPUs counts."""

    name = "pool"

    def __init__(self) -> None:
        self._memo: dict[int, Allocation] = {}

    def find(
        self, capacity: CapacityView, request: Request, *, relaxed: bool = False, nodes: int = EVERYWHERE
    ) -> Allocation | None:
        """See `Placement`."""
        gpus = request.gpus
        if gpus > capacity.free_milli or not nodes & 1:
            return None
        allocation = self._memo.get(gpus)
        if allocation is None:
            allocation = self._memo[gpus] = Allocation((Share(0, 0, gpus),), gpus)
        return allocation


class Pack:
    """A gang that fits on one node gets one, the fullest that fits. A larger one takes
    whole free nodes and at most one remainder on the fullest other node that fits."""

    name = "pack"

    def __init__(self) -> None:
        # Equal allocations are one object: most jobs use one node.
        self._memo: dict[tuple[int, int, int], Allocation] = {}

    def find(
        self, capacity: CapacityView, request: Request, *, relaxed: bool = False, nodes: int = EVERYWHERE
    ) -> Allocation | None:
        """See `Placement`."""
        if request.gpus > capacity.free_milli:
            return None
        nodes &= capacity.eligible(request)
        whole, fraction = divmod(request.gpus, GPU)
        if fraction:
            return self._with_fraction(capacity, whole, fraction, nodes, relaxed)
        return self._whole(capacity, whole, nodes, relaxed)

    def _whole(self, capacity: CapacityView, gpus: int, nodes: int, relaxed: bool) -> Allocation | None:
        if gpus <= capacity.largest_node:
            with_free = capacity.with_free
            for free in range(gpus, capacity.largest_node + 1):
                candidates = with_free[free] & nodes
                if candidates:
                    node = (candidates & -candidates).bit_length() - 1
                    return self._single(node, lowest_devices(capacity.free[node], gpus), gpus * GPU)
            found = None
        else:
            found = self._several(capacity, gpus, nodes)
        return fill(capacity, gpus, fullest_first(capacity, nodes)) if found is None and relaxed else found

    def _several(self, capacity: CapacityView, gpus: int, nodes: int) -> Allocation | None:
        empty = capacity.whole & nodes
        if empty.bit_count() < gpus // capacity.largest_node:
            return None
        shares = []
        size = capacity.size
        for node in sorted(bits(empty), key=lambda node: -size[node]):
            if gpus >= size[node]:
                shares.append(Share(node, capacity.free[node], size[node] * GPU))
                gpus -= size[node]
                nodes &= ~(1 << node)
        if gpus:
            rest = self._whole(capacity, gpus, nodes, False) if gpus <= capacity.largest_node else None
            if rest is None:
                return None
            shares += rest.shares
        return Allocation.of(shares)

    def _with_fraction(
        self, capacity: CapacityView, whole: int, fraction: int, nodes: int, relaxed: bool
    ) -> Allocation | None:
        """The fraction goes onto the fullest shared device that fits, else onto a new one."""
        shares: tuple[Share, ...] = ()
        busy: dict[int, int] = {}
        if whole:
            allocation = self._whole(capacity, whole, nodes, relaxed)
            if allocation is None:
                return None
            shares = allocation.shares
            busy = {share.node: share.devices for share in shares}
        place = capacity.shared_device(fraction, nodes)
        if place is not None:
            return self._joined(shares, Share(place[0], 1 << place[1], fraction))
        for free in range(1, capacity.largest_node + 1):
            for node in bits(capacity.with_free[free] & nodes):
                left = capacity.free[node] & ~busy.get(node, 0)
                if left:
                    return self._joined(shares, Share(node, left & -left, fraction))
        return None

    def _joined(self, shares: tuple[Share, ...], share: Share) -> Allocation:
        return Allocation.of([*shares, share]) if shares else self._single(*share)

    def _single(self, node: int, devices: int, milli: int) -> Allocation:
        key = (node, devices, milli)
        allocation = self._memo.get(key)
        if allocation is None:
            allocation = self._memo[key] = Allocation((Share(node, devices, milli),), milli)
        return allocation


class Spread(Pack):
    """As many nodes as possible, the emptiest first, one GPU more on each in turn."""

    name = "spread"

    def _whole(self, capacity: CapacityView, gpus: int, nodes: int, relaxed: bool) -> Allocation | None:
        room = {node: capacity.free_on(node) for node in emptiest_first(capacity, nodes)}
        if sum(room.values()) < gpus:
            return None
        taken = dict.fromkeys(room, 0)
        while gpus:
            for node in room:
                if gpus and taken[node] < room[node]:
                    taken[node] += 1
                    gpus -= 1
        return Allocation.of(
            [
                Share(node, lowest_devices(capacity.free[node], count), count * GPU)
                for node, count in taken.items()
                if count
            ]
        )


def fullest_first(capacity: CapacityView, nodes: int) -> Iterable[int]:
    """Nodes of the mask with a free GPU, those with the fewest first."""
    for free in range(1, capacity.largest_node + 1):
        yield from bits(capacity.with_free[free] & nodes)


def emptiest_first(capacity: CapacityView, nodes: int) -> Iterable[int]:
    """Nodes of the mask with a free GPU, those with the most first."""
    for free in range(capacity.largest_node, 0, -1):
        yield from bits(capacity.with_free[free] & nodes)


def fill(capacity: CapacityView, gpus: int, order: Iterable[int]) -> Allocation | None:
    """Take what is free, node after node, until the gang is complete."""
    shares = []
    for node in order:
        count = min(gpus, capacity.free_on(node))
        shares.append(Share(node, lowest_devices(capacity.free[node], count), count * GPU))
        gpus -= count
        if not gpus:
            return Allocation.of(shares)
    return None


PLACEMENTS: dict[str, type[Pool | Pack | Spread]] = {"pool": Pool, "pack": Pack, "spread": Spread}
"""Placements by name."""
