"""Which GPUs a gang gets: one node, several, as many as possible, any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.capacity import NodeCapacity, PoolCapacity
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.job import Request
from trainmaster.policies.parts.placement import PLACEMENTS, Pack, Pool, Spread


def nodes(*free: int | tuple[int, int], kinds: str = "") -> NodeCapacity:
    """Nodes by their free GPUs, or (free, size); the lowest devices are in use."""
    pairs = [entry if isinstance(entry, tuple) else (entry, entry) for entry in free]
    capacity = NodeCapacity(
        Cluster(tuple(Node(f"n{i}", size, kinds[i : i + 1]) for i, (_, size) in enumerate(pairs)))
    )
    for node, (left, size) in enumerate(pairs):
        if left < size:
            capacity.take(Allocation.of([Share(node, (1 << size - left) - 1, (size - left) * 1000)]))
    return capacity


def share(capacity: NodeCapacity, node: int, device: int, milli: int) -> None:
    """Part of a device is in use."""
    capacity.take(Allocation.of([Share(node, 1 << device, milli)]))


def by_node(allocation: Allocation | None) -> dict[int, float] | None:
    """GPUs by node."""
    if allocation is None:
        return None
    found: dict[int, float] = {}
    for node, _, milli in allocation.shares:
        found[node] = found.get(node, 0) + milli / 1000
    return found


def pack(capacity: NodeCapacity, gpus: float, **how: object) -> dict[int, float] | None:
    return by_node(Pack().find(capacity, Request(round(gpus * 1000)), **how))  # type: ignore[arg-type]


def spread(capacity: NodeCapacity, gpus: float, **how: object) -> dict[int, float] | None:
    return by_node(Spread().find(capacity, Request(round(gpus * 1000)), **how))  # type: ignore[arg-type]


class TestPack:
    def test_one_node_the_fullest_that_fits_the_lowest_of_equals(self) -> None:
        capacity = nodes((4, 8), (2, 8), (3, 8), (2, 8), 8)
        assert [pack(capacity, gpus) for gpus in (1, 2, 3, 4, 5, 8)] == [
            {1: 1},
            {1: 2},
            {2: 3},
            {0: 4},
            {4: 5},
            {4: 8},
        ]

    def test_the_lowest_free_devices(self) -> None:
        found = Pack().find(nodes((4, 8)), Request(2000))
        assert found is not None
        assert found.shares == (Share(0, 0b110000, 2000),)

    def test_a_gang_that_fits_a_node_never_gets_two(self) -> None:
        assert pack(nodes((3, 4), (3, 4)), 4) is None

    def test_a_larger_one_takes_whole_nodes_and_one_remainder(self) -> None:
        capacity = nodes((3, 4), 4, (2, 4), 4, 4)
        assert pack(capacity, 8) == {1: 4, 3: 4}
        assert pack(capacity, 10) == {1: 4, 3: 4, 2: 2}, "the fullest other node that fits"
        assert pack(capacity, 11) == {1: 4, 3: 4, 0: 3}
        assert pack(capacity, 12) == {1: 4, 3: 4, 4: 4}
        assert pack(capacity, 15) == {1: 4, 3: 4, 4: 4, 0: 3}
        assert pack(capacity, 16) is None, "three whole nodes, and no room for four"

    def test_whole_nodes_are_wholly_free_ones(self) -> None:
        capacity = nodes(4, 4)
        share(capacity, 0, 0, 100)
        assert pack(capacity, 8) is None
        assert pack(capacity, 7) == {1: 4, 0: 3}

    def test_the_remainder_may_go_to_a_whole_node(self) -> None:
        assert pack(nodes(4, 4), 6) == {0: 4, 1: 2}

    def test_uneven_nodes_the_largest_first(self) -> None:
        assert pack(nodes(2, 8, 4, 8), 13) == {1: 8, 2: 4, 0: 1}
        assert pack(nodes(2, 8, 4), 9) == {1: 8, 0: 1}

    def test_only_accepted_types(self) -> None:
        capacity = nodes(4, 4, kinds="AB")
        assert by_node(Pack().find(capacity, Request(2000, ("B",)))) == {1: 2}
        assert Pack().find(capacity, Request(8000, ("B",))) is None
        assert by_node(Pack().find(capacity, Request(8000, ("A", "B")))) == {0: 4, 1: 4}

    def test_only_the_nodes_asked_for(self) -> None:
        assert pack(nodes(2, 4, 4), 2, nodes=0b110) == {1: 2}
        assert pack(nodes(2, 4, 4), 2, nodes=0) is None

    def test_not_on_nodes_that_are_down(self) -> None:
        capacity = nodes(4, 4)
        capacity.set_up(0, up=False)
        assert (pack(capacity, 1), pack(capacity, 5)) == ({1: 1}, None)
        capacity.set_up(1, up=False)
        assert (pack(capacity, 1), pack(capacity, 5)) == (None, None)


class TestRelaxed:
    def test_any_free_gpus_the_fullest_nodes_first(self) -> None:
        capacity = nodes((3, 4), (1, 4), (2, 4))
        assert pack(capacity, 4) is None
        assert pack(capacity, 4, relaxed=True) == {1: 1, 2: 2, 0: 1}
        assert pack(capacity, 6, relaxed=True) == {1: 1, 2: 2, 0: 3}
        assert pack(capacity, 7, relaxed=True) is None

    def test_one_node_is_still_preferred(self) -> None:
        assert pack(nodes((1, 4), (3, 4)), 3, relaxed=True) == {1: 3}

    def test_types_still_count(self) -> None:
        capacity = nodes((1, 2), (1, 2), 1, kinds="ABA")
        assert by_node(Pack().find(capacity, Request(2000, ("A",)), relaxed=True)) == {0: 1, 2: 1}


class TestFractions:
    def test_join_the_fullest_device_that_fits(self) -> None:
        capacity = nodes(2, 2)
        share(capacity, 1, 0, 500)
        share(capacity, 0, 0, 200)
        found = Pack().find(capacity, Request(400))
        assert found is not None
        assert found.shares == (Share(1, 1, 400),)
        assert pack(capacity, 0.6) == {0: 0.6}

    def test_break_a_new_device_on_the_fullest_node(self) -> None:
        capacity = nodes(4, (1, 4))
        share(capacity, 0, 0, 900)
        assert pack(capacity, 0.5) == {1: 0.5}

    def test_a_full_cluster_has_none(self) -> None:
        capacity = nodes(1)
        share(capacity, 0, 0, 600)
        assert (pack(capacity, 0.5), pack(capacity, 0.4)) == (None, {0: 0.4})

    def test_one_and_a_half(self) -> None:
        found = Pack().find(nodes(2), Request(1500))
        assert found is not None
        assert found.shares == (Share(0, 0b01, 1000), Share(0, 0b10, 500))
        assert pack(nodes((1, 2)), 1.5) is None

    def test_80_workers_of_018_on_two_nodes(self) -> None:
        """Five fit on a device: integers don't drift (scenario 53)."""
        capacity, places = nodes(8, 8), Pack()
        for _ in range(80):
            found = places.find(capacity, Request(180))
            assert found is not None
            capacity.take(found)
        assert places.find(capacity, Request(180)) is None
        assert capacity.free_milli == 16_000 - 80 * 180


class TestSpread:
    def test_as_many_nodes_as_possible_the_emptiest_first(self) -> None:
        capacity = nodes((2, 4), 4, (1, 4), 4)
        assert spread(capacity, 2) == {1: 1, 3: 1}
        assert spread(capacity, 4) == {1: 1, 3: 1, 0: 1, 2: 1}
        assert spread(capacity, 6) == {1: 2, 3: 2, 0: 1, 2: 1}
        assert spread(capacity, 11) == {1: 4, 3: 4, 0: 2, 2: 1}
        assert spread(capacity, 12) is None

    def test_only_the_nodes_asked_for(self) -> None:
        assert spread(nodes(4, 4, 4), 4, nodes=0b101) == {0: 2, 2: 2}


class TestPool:
    def test_only_the_number_counts(self) -> None:
        pool = PoolCapacity(Cluster.homogeneous(3, 4).as_pool())
        found = Pool().find(pool, Request(11_500))
        assert found is not None
        assert found.shares == (Share(0, 0, 11_500),)
        pool.take(found)
        assert Pool().find(pool, Request(501)) is None
        assert Pool().find(pool, Request(500)) is not None
        assert Pool().find(pool, Request(500), nodes=0) is None


def test_four_small_jobs_leave_three_whole_nodes() -> None:
    """4 x 4, four 1-GPU jobs, then three of 4 GPUs: all start (scenario 48)."""
    capacity, places = nodes(4, 4, 4, 4), Pack()
    for gpus in (1, 1, 1, 1, 4, 4, 4):
        found = places.find(capacity, Request(gpus * 1000))
        assert found is not None
        capacity.take(found)
    assert capacity.free_milli == 0


def test_one_and_two_share_a_node() -> None:
    """2 x 4 with jobs of 1, 2 and 2 GPUs: the first two on one node (scenario 47)."""
    capacity, places = nodes(4, 4), Pack()
    found = []
    for gpus in (1, 2, 2):
        allocation = places.find(capacity, Request(gpus * 1000))
        assert allocation is not None
        capacity.take(allocation)
        found.append(allocation.nodes)
    assert found == [(0,), (0,), (1,)]


@pytest.mark.parametrize("name", ["pack", "spread"])
@settings(max_examples=150)
@given(
    sizes=st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=4),
    requests=st.lists(
        st.one_of(st.integers(1, 8).map(lambda g: g * 1000), st.sampled_from((250, 500, 1500))), max_size=12
    ),
    relaxed=st.booleans(),
)
def test_what_is_found_is_free_and_as_much_as_asked(
    name: str, sizes: list[int], requests: list[int], relaxed: bool
) -> None:
    capacity, places = nodes(*sizes), PLACEMENTS[name]()
    for milli in requests:
        request = Request(milli)
        found = places.find(capacity, request, relaxed=relaxed)
        if found is not None:
            assert capacity.fault(found, request) == ""
            assert capacity.fits(found)
            assert found.milli == milli == sum(part.milli for part in found.shares)
            capacity.take(found)
        elif relaxed and milli % 1000 == 0:
            assert sum(capacity.free_on(node) for node in range(len(sizes))) * 1000 < milli
        elif milli <= capacity.largest_node * 1000 and milli % 1000 == 0 and name == "pack":
            assert all(capacity.free_on(node) * 1000 < milli for node in range(len(sizes)))


def gang(
    capacity: NodeCapacity, pods: int, gpus: float, placement: type[Pack] = Pack
) -> dict[int, float] | None:
    """Where a gang of pods goes."""
    request = Request(round(pods * gpus * 1000), pods=pods)
    return by_node(placement().find(capacity, request))


class TestPods:
    def test_one_node_if_it_holds_them_all_the_fullest(self) -> None:
        assert gang(nodes(8, (6, 8), (5, 8)), 3, 2) == {1: 6}

    def test_the_fewest_nodes_and_the_last_pods_on_the_fullest(self) -> None:
        assert gang(nodes((2, 8), (5, 8), (7, 8), (3, 8)), 5, 1.0) == {1: 5}
        assert gang(nodes((2, 8), (5, 8), (7, 8), (3, 8)), 9, 1) == {2: 7, 0: 2}
        assert gang(nodes((4, 8), (4, 8), (2, 8)), 5, 2) == {0: 4, 1: 4, 2: 2}

    def test_a_pod_never_spans_nodes(self) -> None:
        """12 GPUs are free, and only one pod of four fits anywhere (scenario 2)."""
        capacity = nodes((6, 8), (2, 8), (2, 8), (2, 8))
        assert gang(capacity, 3, 4) is None
        assert gang(capacity, 1, 4) == {0: 4}
        assert gang(nodes(8, 8), 1, 16) is None
        assert gang(nodes(8, 8), 2, 8) == {0: 8, 1: 8}

    def test_whole_nodes_stay_free_where_used_ones_hold_as_many(self) -> None:
        assert gang(nodes(8, (7, 8), 8), 3, 3) == {1: 6, 0: 3}

    def test_parts_of_devices(self) -> None:
        assert gang(nodes(2, 2), 4, 0.5) == {0: 2}
        assert gang(nodes(2, 2), 9, 0.5) is None
        assert gang(nodes(2, 4), 2, 1.5) == {0: 1.5, 1: 1.5}, "each pod on one node, with a device of its own"
        assert gang(nodes(2, 2), 3, 1.5) is None

    def test_spread_takes_one_pod_more_on_each_in_turn(self) -> None:
        assert gang(nodes((4, 8), 8, (6, 8)), 4, 2, Spread) == {1: 4, 2: 2, 0: 2}
        assert gang(nodes(2, 2), 3, 2, Spread) is None

    @given(
        free=st.lists(st.integers(0, 4), min_size=1, max_size=5),
        pods=st.integers(1, 6),
        size=st.sampled_from([0.5, 1, 1.5, 2, 3]),
        placement=st.sampled_from([Pack, Spread]),
    )
    def test_room_is_found_exactly_when_there_is_some(
        self, free: list[int], pods: int, size: float, placement: type[Pack]
    ) -> None:
        capacity = nodes(*[(count, 4) for count in free])
        found = gang(capacity, pods, size, placement)
        if size == 0.5:
            most = sum(2 * count for count in free)
        else:
            most = sum(int(count // -(-size // 1)) for count in free)
        assert (found is not None) == (pods <= most)
        if found is not None:
            assert sum(found.values()) == pods * size
            assert all(gpus <= free[node] and gpus % size == 0 for node, gpus in found.items())
