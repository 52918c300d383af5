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
        if request.within:
            return self._within(capacity, request, relaxed, nodes, request.within)
        if request.near:
            found = self._within(capacity, request, relaxed, nodes, request.near)
            if found is not None:
                return found
        return self._find(capacity, request, relaxed, nodes)

    def _within(
        self, capacity: CapacityView, request: Request, relaxed: bool, nodes: int, level: str
    ) -> Allocation | None:
        """In one place of the level, the fullest that has room."""
        places: list[tuple[int, int, int]] = []
        for mask in capacity.domains(level):
            free = sum(
                count * (capacity.with_free[count] & mask & nodes).bit_count()
                for count in range(1, capacity.largest_node + 1)
            )
            places.append((free, len(places), mask))
        for _, _, mask in sorted(places):
            found = self._find(capacity, request, relaxed, nodes & mask)
            if found is not None:
                return found
        return None

    def _find(self, capacity: CapacityView, request: Request, relaxed: bool, nodes: int) -> Allocation | None:
        if request.pods is not None:
            return self._pods(capacity, request.pods, request.pod, nodes)
        whole, fraction = divmod(request.gpus, GPU)
        if fraction:
            return self._with_fraction(capacity, whole, fraction, nodes, relaxed)
        return self._whole(capacity, whole, nodes, relaxed)

    def _whole(self, capacity: CapacityView, gpus: int, nodes: int, relaxed: bool) -> Allocation | None:
        if gpus <= capacity.largest_node:
            found = self._on_one(capacity, gpus, nodes)
        else:
            found = self._several(capacity, gpus, nodes)
        return fill(capacity, gpus, fullest_first(capacity, nodes)) if found is None and relaxed else found

    def _on_one(self, capacity: CapacityView, gpus: int, nodes: int) -> Allocation | None:
        """On the fullest node that fits."""
        with_free = capacity.with_free
        for free in range(gpus, capacity.largest_node + 1):
            candidates = with_free[free] & nodes
            if candidates:
                node = (candidates & -candidates).bit_length() - 1
                return self._single(node, lowest_devices(capacity.free[node], gpus), gpus * GPU)
        return None

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

    def _pods(self, capacity: CapacityView, pods: int, pod: int, nodes: int) -> Allocation | None:
        """A gang of pods that fits on one node gets one, the fullest that fits; a larger one the
        fewest nodes."""
        whole, fraction = divmod(pod, GPU)
        if fraction:
            return self._one_by_one(capacity, pods, whole, fraction, nodes)
        counts = self._pods_by_node(capacity, pods, whole, nodes)
        if not counts:
            return None
        shares = [
            Share(node, lowest_devices(capacity.free[node], count * whole), count * pod)
            for node, count in counts.items()
        ]
        return self._single(*shares[0]) if len(shares) == 1 else Allocation.of(shares)

    def _pods_by_node(self, capacity: CapacityView, pods: int, whole: int, nodes: int) -> dict[int, int]:
        """How many pods go to which node: first the nodes that hold most, of equal ones the
        fullest; the last pods go to the fullest node that holds them. Empty = no room."""
        room: dict[int, list[int]] = {}
        for free in range(whole, capacity.largest_node + 1):
            room.setdefault(free // whole, []).extend(bits(capacity.with_free[free] & nodes))
        counts: dict[int, int] = {}
        for most in sorted(room, reverse=True):
            for node in room[most]:
                if pods <= most:
                    fuller = [room[held][0] for held in range(pods, most) if room.get(held)]
                    counts[fuller[0] if fuller else node] = pods
                    return counts
                counts[node] = most
                pods -= most
        return {}

    def _one_by_one(
        self, capacity: CapacityView, pods: int, whole: int, fraction: int, nodes: int
    ) -> Allocation | None:
        """Pods that use a part of a device, each on the fullest node that fits."""
        trial = capacity.copy()
        shares: list[Share] = []
        for _ in range(pods):
            if whole:
                # A device of its own for the part: it must be on the node of the others.
                room = self._on_one(trial, whole + 1, nodes)
                pod = None if room is None else self._cut(room.shares[0], whole, fraction)
            else:
                pod = self._with_fraction(trial, 0, fraction, nodes, False)
            if pod is None:
                return None
            trial.take(pod)
            shares += pod.shares
        return merged(shares)

    @staticmethod
    def _cut(share: Share, whole: int, fraction: int) -> Allocation:
        """All devices but the last, and a part of that."""
        devices = lowest_devices(share.devices, whole)
        rest = share.devices & ~devices
        return Allocation.of([Share(share.node, devices, whole * GPU), Share(share.node, rest, fraction)])

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
    """As many nodes as possible, the emptiest first, one GPU (or pod) more on each in turn."""

    name = "spread"

    def _pods_by_node(self, capacity: CapacityView, pods: int, whole: int, nodes: int) -> dict[int, int]:
        room = {node: capacity.free_on(node) // whole for node in emptiest_first(capacity, nodes)}
        return _in_turn(room, pods)

    def _whole(self, capacity: CapacityView, gpus: int, nodes: int, relaxed: bool) -> Allocation | None:
        room = {node: capacity.free_on(node) for node in emptiest_first(capacity, nodes)}
        taken = _in_turn(room, gpus)
        if not taken:
            return None
        return Allocation.of(
            [
                Share(node, lowest_devices(capacity.free[node], count), count * GPU)
                for node, count in taken.items()
            ]
        )


def merged(shares: list[Share]) -> Allocation:
    """An allocation of shares that may have devices and nodes in common.

    >>> merged([Share(0, 0b1, 500), Share(0, 0b10, 1000), Share(0, 0b1, 500)]).shares
    (Share(node=0, devices=3, milli=2000),)
    """
    devices: dict[tuple[int, int], int] = {}
    for node, mask, milli in shares:
        for device in bits(mask):
            devices[node, device] = devices.get((node, device), 0) + min(milli, GPU)
    whole: dict[int, int] = {}
    parts: list[Share] = []
    for (node, device), milli in devices.items():
        if milli == GPU:
            whole[node] = whole.get(node, 0) | 1 << device
        else:
            parts.append(Share(node, 1 << device, milli))
    return Allocation.of(
        [*(Share(node, mask, mask.bit_count() * GPU) for node, mask in whole.items()), *parts]
    )


def _in_turn(room: dict[int, int], wanted: int) -> dict[int, int]:
    """One more for each node in turn, as long as it has room; empty = there is not enough."""
    if sum(room.values()) < wanted:
        return {}
    taken = dict.fromkeys(room, 0)
    while wanted:
        for node in room:
            if wanted and taken[node] < room[node]:
                taken[node] += 1
                wanted -= 1
    return {node: count for node, count in taken.items() if count}


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
