"""Making room: who goes is needed, and somebody goes whenever that helps; against brute force."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trainmaster.core.capacity import NodeCapacity
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.job import Request
from trainmaster.policies.parts.placement import Pack
from trainmaster.policies.parts.room import make_room


@dataclass(eq=False)
class Runner:
    """As much of a running job as the search looks at."""

    name: int
    gpus: int
    allocation: Allocation

    def __repr__(self) -> str:
        return f"{self.name}:{self.allocation.shares}"


@dataclass
class Scene:
    capacity: NodeCapacity
    runners: list[Runner]
    request: Request
    at_least: int


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Up to three racks of nodes of 4, gangs that run there, and one that wants to."""
    count = draw(st.integers(1, 4))
    nodes = tuple(Node(f"n{i}", 4, topology=(f"r{i // 2}",)) for i in range(count))
    capacity = NodeCapacity(Cluster(nodes, levels=("rack",)))
    runners: list[Runner] = []
    for name in range(draw(st.integers(0, 6))):
        size = draw(st.integers(1, 6))
        pods = draw(st.sampled_from((None, 1, size)))
        allocation = Pack().find(capacity, Request(size * 1000, pods=pods))
        if allocation is not None:
            capacity.take(allocation)
            runners.append(Runner(name, size * 1000, allocation))
    runners = draw(st.permutations(runners))
    stays = draw(st.integers(0, len(runners)))
    pods = draw(st.sampled_from((None, 1, 2, 3)))
    size = draw(st.integers(1, 4)) * (pods or draw(st.integers(1, 2)))
    within = draw(st.sampled_from(("", "", "rack")))
    at_least = draw(st.sampled_from((0, 0, 1000, 3000)))
    return Scene(capacity, runners[stays:], Request(size * 1000, pods=pods, within=within), at_least)


def fits(scene: Scene, victims: Any) -> bool:
    """Whether there is room, and enough is given up, without these jobs."""
    trial = scene.capacity.copy()
    for victim in victims:
        trial.give(victim.allocation)
    enough = sum(victim.gpus for victim in victims) >= scene.at_least
    return enough and Pack().find(trial, scene.request) is not None


@settings(max_examples=400)
@given(scene=scenes())
def test_nobody_goes_needlessly_and_somebody_whenever_it_helps(scene: Scene) -> None:
    free = list(scene.capacity.free)
    found = make_room(
        scene.capacity,
        Pack(),
        scene.request,
        scene.runners,
        at_least=scene.at_least,  # type: ignore[arg-type]
    )
    assert scene.capacity.free == free, "the capacity is left as it was"
    if found is None:
        ways = [set(some) for n in range(len(scene.runners) + 1) for some in combinations(scene.runners, n)]
        assert not any(fits(scene, way) for way in ways)
        return
    assert set(found) <= set(scene.runners)
    assert fits(scene, found)
    for spared in found:
        assert not fits(scene, [victim for victim in found if victim is not spared])
    assert [runner for runner in scene.runners if runner in found] == found, "in their order"


def test_where_no_node_is_up_there_is_no_room_to_make() -> None:
    capacity = NodeCapacity(Cluster((Node("n0", 8),)))
    runner = Runner(0, 8000, Allocation.of([Share(0, 0xFF, 8000)]))
    capacity.take(runner.allocation)
    capacity.set_up(0, False)
    assert make_room(capacity, Pack(), Request(8000), [runner]) is None  # type: ignore[list-item]


@settings(max_examples=300)
@given(scene=scenes())
def test_the_strongest_who_goes_is_as_weak_as_can_be(scene: Scene) -> None:
    """On whole GPUs of one node each: no other way spares everybody down to the strongest victim."""
    assume(scene.request.pods is not None and not scene.request.within and not scene.at_least)
    single = all(len(runner.allocation.shares) == 1 for runner in scene.runners)
    assume(single)
    found = make_room(scene.capacity, Pack(), scene.request, scene.runners)  # type: ignore[arg-type]
    if found:
        strongest = scene.runners.index(found[-1])  # type: ignore[arg-type]
        assert not fits(scene, scene.runners[:strongest])
