"""Free GPUs, indexed so that finding a node costs the same with 10 nodes or 1,000.

Two capacities are kept apart. *Planning* capacity (`free`, `with_free`, `take`,
`give`) counts GPUs that are being released as free and GPUs that are promised as
taken. *Physical* occupation (`begin`, `hold`, `unhold`, `leave`, `startable`) remembers who
still sits where, so that a promise is only kept once its GPUs are empty.

Node sets are int bit masks, one for each number of wholly free devices. A pooled
cluster is one node of which only the free total counts.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import PolicyError
from trainmaster.model.job import Request
from trainmaster.model.units import GPU


class NodeCapacity:
    """Capacity by node and device."""

    __slots__ = (
        "_cluster",
        "_domains",
        "_eligible",
        "_held",
        "_shared",
        "_typed",
        "_types",
        "_up",
        "free",
        "free_milli",
        "gained",
        "largest_node",
        "size",
        "whole",
        "with_free",
    )

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.size = [node.gpus for node in cluster.nodes]
        self.free = [(1 << gpus) - 1 for gpus in self.size]
        self.largest_node = max(self.size)
        self.free_milli = sum(self.size) * GPU
        self.gained = 0
        self.with_free = [0] * (self.largest_node + 1)
        for index, gpus in enumerate(self.size):
            self.with_free[gpus] |= 1 << index
        self._up = self.whole = (1 << len(self.size)) - 1
        self._types: dict[str, int] = {}
        for index, node in enumerate(cluster.nodes):
            # Logs and cluster files spell types differently: a100, A100.
            name = node.gpu_type.casefold()
            self._types[name] = self._types.get(name, 0) | 1 << index
        self._typed = self._types.keys() != {""}
        self._eligible: dict[tuple[object, object], int] = {}
        self._domains: dict[str, tuple[int, ...]] = {}
        # Devices shared by fractions: (free milli, node, device), and the same by place.
        self._shared: list[tuple[int, int, int]] = []
        # Devices and milli-GPUs of stopping jobs, by node.
        self._held: dict[int, list[tuple[int, int]]] = {}

    def copy(self) -> NodeCapacity:
        """A scratch copy of the planning capacity."""
        twin = object.__new__(NodeCapacity)
        twin._cluster, twin._types, twin._typed = self._cluster, self._types, self._typed
        twin._eligible, twin._domains = self._eligible, self._domains
        twin.size, twin.largest_node = self.size, self.largest_node
        twin.free, twin.with_free = self.free.copy(), self.with_free.copy()
        twin.whole, twin._up, twin.free_milli = self.whole, self._up, self.free_milli
        twin.gained = self.gained
        twin._shared, twin._held = self._shared.copy(), {}
        return twin

    def free_on(self, node: int) -> int:
        """Wholly free GPUs of a node."""
        return self.free[node].bit_count()

    def eligible(self, request: Request) -> int:
        """Mask of the healthy nodes with the labels that the request names and of a type that it
        accepts; of any where the cluster doesn't tell types apart."""
        types = request.gpu_types if self._typed else ()
        if not types and not request.labels:
            return self._up
        key = (types, request.labels)
        mask = self._eligible.get(key)
        if mask is None:
            mask = self._eligible[key] = self._with_labels(request.labels) & self._of_types(types)
        return mask & self._up

    def _of_types(self, types: tuple[str, ...]) -> int:
        mask = 0 if types else -1
        for gpu_type in types:
            mask |= self._types.get(gpu_type.casefold(), 0)
        return mask

    def _with_labels(self, labels: tuple[tuple[str, str], ...]) -> int:
        return sum(
            1 << node for node, found in enumerate(self._cluster.nodes) if {*labels} <= {*found.labels}
        )

    def domains(self, level: str) -> tuple[int, ...]:
        """Masks of the places of a level of the topology, in order of their first nodes."""
        masks = self._domains.get(level)
        if masks is None:
            cluster = self._cluster
            depth = cluster.levels.index(level) + 1 if level in cluster.levels else 0
            places: dict[tuple[str, ...], int] = {}
            for index, node in enumerate(cluster.nodes if depth else ()):
                place = node.topology[:depth]
                places[place] = places.get(place, 0) | 1 << index
            masks = self._domains[level] = tuple(places.values())
        return masks

    def shared_device(self, milli: int, nodes: int) -> tuple[int, int] | None:
        """The fullest shared device on `nodes` with `milli` left; see the port."""
        for _, node, device in self._shared[bisect_left(self._shared, (milli, -1, -1)) :]:
            if nodes >> node & 1:
                return node, device
        return None

    def fits(self, allocation: Allocation) -> bool:
        """Whether these very GPUs are free on healthy nodes."""
        for node, devices, milli in allocation.shares:
            if not self._up >> node & 1:
                return False
            if devices & ~self.free[node] and (milli >= GPU or milli > self._left(node, devices)):
                return False
        return True

    def fault(self, allocation: Allocation, request: Request) -> str:
        """What makes these GPUs impossible for the request, whatever is free; "" = nothing."""
        eligible = self.eligible(request) | ~self._up
        size = self.size
        if len(allocation.shares) == 1:
            node, devices, milli = allocation.shares[0]
            whole = devices.bit_count() * GPU == milli == allocation.milli
            if whole and 0 <= node < len(size) and eligible >> node & 1 and not devices >> size[node]:
                return ""  # the usual case, quickly
        if sum(share.milli for share in allocation.shares) != allocation.milli:
            return f"its shares are not {allocation.milli / GPU:g} GPUs together"
        taken: dict[int, int] = {}
        for node, devices, milli in allocation.shares:
            if not 0 <= node < len(size):
                return f"there is no node {node}"
            name = self._cluster.nodes[node].name
            whole = milli % GPU == 0 and devices.bit_count() * GPU == milli
            if not (whole or (0 < milli < GPU and devices.bit_count() == 1)) or devices >> size[node]:
                return f"devices {devices:#x} of node {name} are not {milli / GPU:g} of its GPUs"
            if taken.get(node, 0) & devices:
                return f"a GPU of node {name} is named twice"
            if not eligible >> node & 1:
                return f"node {name} has GPUs of type {self._cluster.nodes[node].gpu_type!r}"
            taken[node] = taken.get(node, 0) | devices
        return ""

    def take(self, allocation: Allocation) -> None:
        """Count these GPUs as used.

        Raises:
            PolicyError: one of them is not free; nothing is taken then.
        """
        if not self.fits(allocation):
            raise PolicyError(self._conflict(allocation))
        self.take_back(allocation)

    def take_back(self, allocation: Allocation) -> None:
        """Undo `give`, on nodes that are down too."""
        for node, devices, milli in allocation.shares:
            if milli < GPU and devices & ~self.free[node]:
                self._resize_shared(node, devices, -milli)
            else:
                self._set_free(node, self.free[node] ^ devices)
                if milli < GPU:
                    insort(self._shared, (GPU - milli, node, devices.bit_length() - 1))
            if self._up >> node & 1:
                self.free_milli -= milli

    def give(self, allocation: Allocation) -> None:
        """Count these GPUs as free again (on a node that is down: once it is back)."""
        self.gained += 1
        for node, devices, milli in allocation.shares:
            if milli < GPU:
                self._resize_shared(node, devices, milli)
            else:
                self._set_free(node, self.free[node] | devices)
            if self._up >> node & 1:
                self.free_milli += milli

    def begin(self, allocation: Allocation) -> None:
        """A job is asked to start here: it occupies its devices until it leaves."""

    def hold(self, allocation: Allocation) -> None:
        """The job on these devices was asked to stop and still occupies them."""
        for node, devices, milli in allocation.shares:
            self._held.setdefault(node, []).append((devices, milli))

    def unhold(self, allocation: Allocation) -> None:
        """The job that was asked to stop no longer occupies these devices."""
        for node, devices, milli in allocation.shares:
            held = self._held[node]
            held.remove((devices, milli))
            if not held:
                del self._held[node]

    def leave(self, allocation: Allocation) -> None:
        """A job that had begun here is gone."""

    def startable(self, allocation: Allocation) -> bool:
        """Whether these GPUs, taken before, are not still occupied by stopping jobs. Parts of a
        device can be used beside a part that is being given up."""
        if not self._held:
            return True
        for node, devices, milli in allocation.shares:
            beside = self._left(node, devices) if milli < GPU else 0
            if sum(held for where, held in self._held.get(node, ()) if where & devices) > beside:
                return False
        return True

    def set_up(self, node: int, up: bool) -> None:
        """A node fails (its free GPUs vanish) or is back (they count again)."""
        bit = 1 << node
        if bool(self._up & bit) == up:
            return
        self._up ^= bit
        self.gained += 1
        free = self.free[node].bit_count()
        milli = free * GPU + sum(left for left, where, _ in self._shared if where == node)
        self.with_free[free] ^= bit
        if free == self.size[node]:
            self.whole ^= bit
        self.free_milli += milli if up else -milli
        self.largest_node = max((g for i, g in enumerate(self.size) if self._up >> i & 1), default=0)

    def is_up(self, node: int) -> bool:
        """Whether the node is healthy."""
        return bool(self._up >> node & 1)

    def _set_free(self, node: int, free: int) -> None:
        before, after = self.free[node].bit_count(), free.bit_count()
        self.free[node] = free
        bit = 1 << node
        if not self._up & bit:
            return
        self.with_free[before] ^= bit
        self.with_free[after] ^= bit
        size = self.size[node]
        if (before == size) != (after == size):
            self.whole ^= bit

    def _left(self, node: int, devices: int) -> int:
        """Free milli of a shared device, 0 if it is not shared."""
        device = devices.bit_length() - 1
        return next((left for left, *place in self._shared if place == [node, device]), 0)

    def _resize_shared(self, node: int, devices: int, change: int) -> None:
        device = devices.bit_length() - 1
        left = self._left(node, devices)
        self._shared.remove((left, node, device))
        if left + change == GPU:
            self._set_free(node, self.free[node] | devices)
        else:
            insort(self._shared, (left + change, node, device))

    def _conflict(self, allocation: Allocation) -> str:
        for share in allocation.shares:
            name = self._cluster.nodes[share.node].name
            if not self._up >> share.node & 1:
                return f"node {name} is down"
            if not self.fits(Allocation.of([share])):
                free = self.free[share.node]
                return (
                    f"node {name} has {free.bit_count()} whole GPUs free (devices {free:#x}), "
                    f"not the {share.milli / GPU:g} asked (devices {share.devices:#x})"
                )
        raise AssertionError("every share is free")


class PoolCapacity:
    """Capacity of a pooled cluster: one number."""

    __slots__ = ("_cluster", "_idle", "free_milli", "gained", "largest_node")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.largest_node = cluster.gpus
        self.free_milli = self._idle = cluster.gpus * GPU
        self.gained = 0

    def copy(self) -> PoolCapacity:
        """A scratch copy."""
        twin = object.__new__(PoolCapacity)
        twin._cluster, twin.largest_node = self._cluster, self.largest_node
        twin.free_milli, twin._idle, twin.gained = self.free_milli, self._idle, self.gained
        return twin

    @property
    def size(self) -> list[int]:
        """GPUs of the only node."""
        return [self.largest_node]

    @property
    def free(self) -> list[int]:
        """No devices are told apart in a pool."""
        return [0]

    @property
    def with_free(self) -> list[int]:
        """As if the node had this many wholly free devices."""
        masks = [0] * (self.largest_node + 1)
        masks[self.free_milli // GPU] = 1
        return masks

    @property
    def whole(self) -> int:
        """The only node, if nothing runs on it."""
        return int(self.free_milli == self.largest_node * GPU)

    def free_on(self, node: int) -> int:
        """Whole GPUs free in the pool."""
        return self.free_milli // GPU

    def eligible(self, request: Request) -> int:
        """The only node: a pool does not tell types apart."""
        return 1

    def domains(self, level: str) -> tuple[int, ...]:
        """A pool is one place."""
        return (1,)

    def shared_device(self, milli: int, nodes: int) -> tuple[int, int] | None:
        """As if the free part of a GPU were on one device of the only node."""
        return (0, 0) if self.free_milli % GPU >= milli else None

    def fits(self, allocation: Allocation) -> bool:
        """Whether that many milli-GPUs are free."""
        return allocation.milli <= self.free_milli

    def fault(self, allocation: Allocation, request: Request) -> str:
        """What makes the allocation impossible, whatever is free; "" = nothing."""
        shares = allocation.shares
        sound = len(shares) == 1 and shares[0].node == 0 and shares[0].milli == allocation.milli
        return "" if sound else "in a pool all GPUs are on node 0"

    def take(self, allocation: Allocation) -> None:
        """Count as used.

        Raises:
            PolicyError: more than is free.
        """
        if allocation.milli > self.free_milli:
            raise PolicyError(
                f"the pool has {self.free_milli / GPU:g} GPUs free, not the {allocation.milli / GPU:g} asked"
            )
        self.free_milli -= allocation.milli

    def take_back(self, allocation: Allocation) -> None:
        """Undo `give`."""
        self.free_milli -= allocation.milli

    def give(self, allocation: Allocation) -> None:
        """Count as free again."""
        self.gained += 1
        self.free_milli += allocation.milli

    def begin(self, allocation: Allocation) -> None:
        """A job is asked to start: it occupies its GPUs until it leaves."""
        self._idle -= allocation.milli

    def hold(self, allocation: Allocation) -> None:
        """The job was asked to stop; it still occupies its GPUs."""

    def unhold(self, allocation: Allocation) -> None:
        """The job that was asked to stop does so no longer."""

    def leave(self, allocation: Allocation) -> None:
        """A job that had begun is gone."""
        self._idle += allocation.milli

    def startable(self, allocation: Allocation) -> bool:
        """Whether that many GPUs are empty."""
        return allocation.milli <= self._idle

    def set_up(self, node: int, up: bool) -> None:
        """A pool has no nodes that could fail."""
        raise PolicyError("a pooled cluster has no nodes that could fail; use placement pack")

    def is_up(self, node: int) -> bool:
        """A pool is always up."""
        return True


Capacity = NodeCapacity | PoolCapacity


def capacity_of(cluster: Cluster) -> Capacity:
    """All GPUs of `cluster`, free."""
    return PoolCapacity(cluster) if cluster.pooled else NodeCapacity(cluster)
