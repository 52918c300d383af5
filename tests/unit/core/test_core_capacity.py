"""Free GPUs: what is taken, given back, held by stopping jobs, shared, or gone with a node."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.capacity import NodeCapacity, PoolCapacity, capacity_of
from trainmaster.model.allocation import Allocation, Share, bits
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import PolicyError
from trainmaster.model.job import Request


def nodes(*gpus: int, kinds: str = "") -> NodeCapacity:
    """Nodes n0, n1, … with so many GPUs, of the types named by letters."""
    types = kinds or " " * len(gpus)
    return NodeCapacity(Cluster(tuple(Node(f"n{i}", g, types[i].strip()) for i, g in enumerate(gpus))))


def on(node: int, devices: int, milli: int | None = None) -> Allocation:
    """GPUs of one node."""
    return Allocation.of([Share(node, devices, devices.bit_count() * 1000 if milli is None else milli)])


class TestWholeDevices:
    def test_all_are_free_at_first(self) -> None:
        capacity = nodes(4, 2)
        assert (capacity.free, capacity.free_milli, capacity.whole) == ([0b1111, 0b11], 6000, 0b11)
        assert (capacity.largest_node, capacity.with_free) == (4, [0, 0, 0b10, 0, 0b01])

    def test_take_and_give_move_a_node_between_the_masks(self) -> None:
        capacity = nodes(4, 4)
        capacity.take(on(0, 0b0101))
        assert capacity.free == [0b1010, 0b1111]
        assert capacity.with_free == [0, 0, 0b01, 0, 0b10]
        assert (capacity.free_milli, capacity.free_on(0), capacity.whole) == (6000, 2, 0b10)
        capacity.give(on(0, 0b0101))
        assert (capacity.with_free, capacity.whole, capacity.free_milli) == ([0, 0, 0, 0, 0b11], 0b11, 8000)

    def test_what_is_not_free_cannot_be_taken_and_nothing_of_it_is(self) -> None:
        capacity = nodes(2, 2)
        capacity.take(on(1, 0b01))
        both = Allocation.of([Share(0, 0b11, 2000), Share(1, 0b01, 1000)])
        assert not capacity.fits(both)
        with pytest.raises(
            PolicyError,
            match=r"^node n1 has 1 whole GPUs free \(devices 0x2\), not the 1 asked \(devices 0x1\)$",
        ):
            capacity.take(both)
        assert capacity.free == [0b11, 0b10]

    def test_gained_grows_whenever_gpus_become_free(self) -> None:
        capacity = nodes(2)
        before = capacity.gained
        capacity.take(on(0, 0b1))
        assert capacity.gained == before
        capacity.give(on(0, 0b1))
        assert capacity.gained > before


class TestFractions:
    def test_several_share_a_device_until_it_is_full(self) -> None:
        capacity = nodes(2)
        capacity.take(on(0, 0b01, 300))
        capacity.take(on(0, 0b01, 700))
        assert (capacity.free, capacity.free_milli) == ([0b10], 1000)
        assert not capacity.fits(on(0, 0b01, 1))
        with pytest.raises(PolicyError, match=r"not the 0\.1 asked"):
            capacity.take(on(0, 0b01, 100))

    def test_a_device_is_whole_again_when_the_last_one_leaves(self) -> None:
        capacity = nodes(2)
        for _ in range(2):
            capacity.take(on(0, 0b01, 400))
        capacity.give(on(0, 0b01, 400))
        assert (capacity.free, capacity.free_milli, capacity.whole) == ([0b10], 1600, 0)
        capacity.give(on(0, 0b01, 400))
        assert (capacity.free, capacity.free_milli, capacity.whole) == ([0b11], 2000, 1)

    def test_a_shared_device_is_not_free_for_a_whole_gpu(self) -> None:
        capacity = nodes(1)
        capacity.take(on(0, 0b1, 1))
        assert not capacity.fits(on(0, 0b1))

    def test_the_fullest_shared_device_that_fits_comes_first(self) -> None:
        capacity = nodes(3, 1)
        for node, device, milli in ((0, 0, 200), (0, 1, 600), (0, 2, 900), (1, 0, 600)):
            capacity.take(on(node, 1 << device, milli))
        assert capacity.shared_device(100, -1) == (0, 2)
        assert capacity.shared_device(101, -1) == (0, 1), "the lowest node of equals"
        assert capacity.shared_device(400, 0b10) == (1, 0), "on the nodes asked for"
        assert capacity.shared_device(500, -1) == (0, 0)
        assert capacity.shared_device(801, -1) is None
        assert capacity.shared_device(500, 0b10) is None


class TestNodesThatFail:
    def test_a_failed_nodes_free_gpus_vanish_and_return(self) -> None:
        capacity = nodes(4, 2)
        capacity.take(on(0, 0b0011))
        capacity.take(on(0, 0b0100, 250))
        capacity.set_up(0, up=False)
        assert (capacity.free_milli, capacity.largest_node, capacity.is_up(0)) == (2000, 2, False)
        assert (capacity.with_free, capacity.whole) == ([0, 0, 0b10, 0, 0], 0b10)
        assert not capacity.fits(on(0, 0b1000))
        with pytest.raises(PolicyError, match=r"^node n0 is down$"):
            capacity.take(on(0, 0b1000))
        capacity.set_up(0, up=True)
        assert (capacity.free_milli, capacity.largest_node) == (3750, 4)
        assert capacity.with_free == [0, 0b01, 0b10, 0, 0]

    def test_what_a_dead_job_held_counts_once_the_node_is_back(self) -> None:
        capacity = nodes(2, 2)
        held = Allocation.of([Share(0, 0b11, 2000), Share(1, 0b01, 500)])
        capacity.take(held)
        capacity.set_up(0, up=False)
        capacity.give(held)
        assert (capacity.free_milli, capacity.whole) == (2000, 0b10)
        capacity.set_up(0, up=True)
        assert (capacity.free_milli, capacity.whole) == (4000, 0b11)

    def test_saying_it_twice_changes_nothing(self) -> None:
        capacity = nodes(2, 2)
        for _ in range(2):
            capacity.set_up(1, up=False)
        assert (capacity.free_milli, capacity.with_free[2]) == (2000, 0b01)
        for _ in range(2):
            capacity.set_up(1, up=True)
        assert (capacity.free_milli, capacity.with_free[2]) == (4000, 0b11)

    def test_without_any_healthy_node_there_is_nothing(self) -> None:
        capacity = nodes(2)
        capacity.set_up(0, up=False)
        assert (capacity.largest_node, capacity.free_milli) == (0, 0)
        assert capacity.eligible(Request(1000)) == 0

    def test_a_stop_on_a_dead_node_can_be_undone(self) -> None:
        capacity = nodes(2, 2)
        held = Allocation.of([Share(0, 0b01, 1000), Share(1, 0b01, 300)])
        capacity.take(held)
        capacity.set_up(0, up=False)
        before = (list(capacity.free), capacity.free_milli)
        capacity.give(held)
        capacity.take_back(held)
        assert (capacity.free, capacity.free_milli) == before


class TestTypes:
    def test_any_of_the_accepted_types_will_do(self) -> None:
        capacity = nodes(1, 1, 1, kinds="AVK")
        assert capacity.eligible(Request(1000)) == 0b111
        assert capacity.eligible(Request(1000, ("A", "K"))) == 0b101
        assert capacity.eligible(Request(1000, ("T4",))) == 0
        capacity.set_up(0, up=False)
        assert capacity.eligible(Request(1000, ("A", "K"))) == 0b100

    def test_a_cluster_that_tells_no_types_apart_accepts_every_request(self) -> None:
        assert nodes(1, 1).eligible(Request(1000, ("A100",))) == 0b11


class TestStoppingJobs:
    def test_their_gpus_can_be_planned_but_not_started_on(self) -> None:
        capacity = nodes(2)
        victim, next_one = on(0, 0b01), on(0, 0b11)
        capacity.take(victim)
        capacity.give(victim)
        capacity.hold(victim)
        assert capacity.fits(next_one)
        assert not capacity.startable(next_one)
        assert capacity.startable(on(0, 0b10))
        capacity.unhold(victim)
        assert capacity.startable(next_one)

    def test_two_fractions_stop_on_one_device(self) -> None:
        capacity = nodes(1)
        for _ in range(2):
            capacity.hold(on(0, 0b1, 500))
        capacity.unhold(on(0, 0b1, 500))
        assert not capacity.startable(on(0, 0b1))
        capacity.unhold(on(0, 0b1, 500))
        assert capacity.startable(on(0, 0b1))

    @pytest.mark.parametrize(("milli", "room"), [(500, True), (600, False)])
    def test_a_fraction_starts_beside_one_that_stops(self, milli: int, room: bool) -> None:
        capacity = nodes(1)
        old, new = on(0, 0b1, 500), on(0, 0b1, milli)
        capacity.take(old)
        capacity.give(old)
        capacity.hold(old)
        capacity.take(new)
        assert capacity.startable(new) is room
        capacity.unhold(old)
        assert capacity.startable(new)

    def test_a_pool_counts_what_is_really_empty(self) -> None:
        pool = PoolCapacity(Cluster.homogeneous(1, 4).as_pool())
        gang = on(0, 0, 3000)
        pool.take(gang)
        pool.begin(gang)
        pool.give(gang)  # planned away, but still there
        assert pool.fits(on(0, 0, 4000))
        assert (pool.startable(on(0, 0, 1000)), pool.startable(on(0, 0, 2000))) == (True, False)
        pool.leave(gang)
        assert pool.startable(on(0, 0, 4000))


class TestImpossibleAllocations:
    @pytest.mark.parametrize(
        ("shares", "what"),
        [
            ([Share(2, 1, 1000)], "there is no node 2"),
            ([Share(-1, 1, 1000)], "there is no node -1"),
            ([Share(0, 0b1, 2000)], "devices 0x1 of node n0 are not 2 of its GPUs"),
            ([Share(0, 0, 1000)], "devices 0x0 of node n0 are not 1 of its GPUs"),
            ([Share(0, 0b100, 1000)], "devices 0x4 of node n0 are not 1 of its GPUs"),
            ([Share(0, 0b11, 500)], "devices 0x3 of node n0 are not 0.5 of its GPUs"),
            ([Share(0, 0b11, 1500)], "devices 0x3 of node n0 are not 1.5 of its GPUs"),
            ([Share(0, 0b1, 1000), Share(0, 0b1, 1000)], "a GPU of node n0 is named twice"),
            ([Share(0, 0b1, 1000), Share(0, 0b1, 500)], "a GPU of node n0 is named twice"),
        ],
    )
    def test_are_named(self, shares: list[Share], what: str) -> None:
        allocation = Allocation.of(shares)
        assert nodes(2, 2).fault(allocation, Request(allocation.milli)) == what

    def test_a_wrong_type_is_named(self) -> None:
        capacity = nodes(2, 2, kinds="AV")
        assert capacity.fault(on(1, 0b1), Request(1000, ("A",))) == "node n1 has GPUs of type 'V'"
        assert capacity.fault(on(0, 0b1), Request(1000, ("A",))) == ""

    def test_the_shares_must_add_up(self) -> None:
        lying = Allocation((Share(0, 0b1, 1000),), 2000)
        assert nodes(2).fault(lying, Request(2000)) == "its shares are not 2 GPUs together"

    def test_sound_ones_pass(self) -> None:
        capacity = nodes(2, 2)
        for shares in (
            [Share(0, 0b11, 2000)],
            [Share(0, 0b1, 1000), Share(0, 0b10, 500)],
            [Share(0, 0b1, 1), Share(1, 0b1, 999)],
        ):
            allocation = Allocation.of(shares)
            assert capacity.fault(allocation, Request(allocation.milli)) == ""

    def test_a_pool_is_node_0(self) -> None:
        pool = PoolCapacity(Cluster.homogeneous(1, 4).as_pool())
        assert pool.fault(on(0, 0, 3000), Request(3000)) == ""
        for allocation in (on(1, 0, 3000), Allocation.of([Share(0, 0, 1000), Share(0, 0, 2000)])):
            assert pool.fault(allocation, Request(3000)) == "in a pool all GPUs are on node 0"


class TestPool:
    def test_counts_and_refuses(self) -> None:
        pool = capacity_of(Cluster.homogeneous(2, 4).as_pool())
        assert isinstance(pool, PoolCapacity)
        pool.take(on(0, 0, 5500))
        assert (pool.free_milli, pool.free_on(0), pool.whole) == (2500, 2, 0)
        assert pool.with_free == [0, 0, 1, 0, 0, 0, 0, 0, 0]
        with pytest.raises(PolicyError, match=r"^the pool has 2\.5 GPUs free, not the 3 asked$"):
            pool.take(on(0, 0, 3000))
        pool.give(on(0, 0, 5500))
        assert (pool.free_milli, pool.whole) == (8000, 1)

    def test_its_free_part_of_a_gpu_is_a_shared_device(self) -> None:
        pool = PoolCapacity(Cluster.homogeneous(1, 2).as_pool())
        assert pool.shared_device(1, 1) is None
        pool.take(on(0, 0, 300))
        assert (pool.shared_device(700, 1), pool.shared_device(701, 1)) == ((0, 0), None)

    def test_has_no_nodes_that_fail(self) -> None:
        with pytest.raises(PolicyError, match="use placement pack"):
            PoolCapacity(Cluster.homogeneous(1, 2).as_pool()).set_up(0, up=False)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_copy_is_for_questions_only(pooled: bool) -> None:
    cluster = Cluster.homogeneous(2, 2)
    capacity = capacity_of(cluster.as_pool() if pooled else cluster)
    gang = on(0, 0 if pooled else 0b11, 2000)
    part = on(0, 0, 500) if pooled else on(1, 0b1, 500)
    capacity.take(part)
    twin = capacity.copy()
    twin.take(gang)
    twin.give(part)
    assert (twin.free_milli, capacity.free_milli) == (2000, 3500)
    assert capacity.fits(gang)
    assert twin.free_on(0) == (2 if pooled else 0)


Step = tuple[int, int, bool]


@settings(max_examples=100)
@given(
    sizes=st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans()), max_size=30),
)
def test_the_masks_agree_with_a_plain_account(sizes: list[int], steps: list[Step]) -> None:
    """Take, give, fail and recover at random; compare with a list of devices."""
    capacity = nodes(*sizes)
    devices = {(node, device): 0 for node, size in enumerate(sizes) for device in range(size)}
    up = [True] * len(sizes)
    held: list[Allocation] = []
    for kind, number, flag in steps:
        node = number % len(sizes)
        if kind == 0:
            up[node] = flag
            capacity.set_up(node, up=flag)
        elif kind == 1 and held:
            gone = held.pop(number % len(held))
            capacity.give(gone)
            for share in gone.shares:
                for device in bits(share.devices):
                    devices[share.node, device] -= min(share.milli, 1000)
        elif kind > 1:
            milli = (1000, 300, 500, 2000)[kind - 2]
            wanted = on(node, 0b11 if milli == 2000 else 0b1, milli)
            free = [devices.get((node, device), 1000) for device in bits(wanted.shares[0].devices)]
            fits = up[node] and all(used + min(milli, 1000) <= 1000 for used in free)
            assert capacity.fits(wanted) == fits
            if fits:
                capacity.take(wanted)
                held.append(wanted)
                for device in bits(wanted.shares[0].devices):
                    devices[node, device] += min(milli, 1000)
        left = [sum(devices[n, d] == 0 for d in range(size)) for n, size in enumerate(sizes)]
        assert [capacity.free_on(n) for n in range(len(sizes))] == left
        assert capacity.free_milli == sum(1000 - used for (n, _), used in devices.items() if up[n])
        for count, mask in enumerate(capacity.with_free):
            assert bits(mask) == [n for n in range(len(sizes)) if up[n] and left[n] == count]
        assert bits(capacity.whole) == [n for n, size in enumerate(sizes) if up[n] and left[n] == size]
