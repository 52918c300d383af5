"""Making room: which of the jobs that may be stopped go for one gang, and where it goes.

The search is exact about what is needed and greedy about which: nodes are ranked by the
strongest job that must go there, the gang takes those that cost the weakest jobs, and then,
strongest first, whoever is not needed after all is spared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trainmaster.model.allocation import bits
from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView, JobView
from trainmaster.model.units import GPU
from trainmaster.policies.parts.placement import EVERYWHERE, Placement
from trainmaster.policies.parts.victims import allocation_of


def make_room(
    capacity: CapacityView,
    placement: Placement,
    request: Request,
    candidates: Sequence[JobView],
    *,
    at_least: int = 0,
    nodes: int = EVERYWHERE,
) -> list[JobView] | None:
    """The jobs to stop so that the request finds room.

    Args:
        capacity: what is free now; it is left as it is.
        placement: where gangs may go.
        request: what room is made for.
        candidates: jobs that may be stopped, in the order in which they would go.
        at_least: milli-GPUs that they must give up together, whatever is free (for a limit).
        nodes: mask of the nodes that may be used.

    Returns:
        A part of the candidates, in their order, none of whom could be left out; None = even
        without all of them there is no room.
    """
    nodes &= capacity.eligible(request)
    if not nodes:
        return None
    if not request.within:
        return _make_room(capacity, placement, request, candidates, at_least, nodes)
    plans = (
        _make_room(capacity, placement, request, candidates, at_least, nodes & place)
        for place in capacity.domains(request.within)
    )
    return min((plan for plan in plans if plan is not None), key=_gpus, default=None)


def _gpus(jobs: Sequence[JobView]) -> int:
    return sum(job.gpus for job in jobs)


def _make_room(
    capacity: CapacityView,
    placement: Placement,
    request: Request,
    candidates: Sequence[JobView],
    at_least: int,
    nodes: int,
) -> list[JobView] | None:
    chosen = _chosen(capacity, request, candidates, nodes)
    if chosen is None:
        return None
    trial = capacity.copy()
    for job in chosen:
        trial.give(allocation_of(job))
    if placement.find(trial, request, nodes=nodes) is None:
        return None
    given = _gpus(chosen)
    for job in candidates:
        if given >= at_least:
            break
        if job not in chosen:
            chosen.append(job)
            trial.give(allocation_of(job))
            given += job.gpus
    if given < at_least:
        return None
    return needed(trial, placement, request, chosen, at_least=at_least, nodes=nodes)


def _chosen(
    capacity: CapacityView, request: Request, candidates: Sequence[JobView], nodes: int
) -> list[JobView] | None:
    """Candidates on the nodes where room costs the weakest of them."""
    by_node: dict[int, list[tuple[int, int]]] = {}
    for rank, job in enumerate(candidates):
        for share in allocation_of(job).shares:
            if nodes >> share.node & 1:
                by_node.setdefault(share.node, []).append((rank, share.milli))
    needs = _needs(request, capacity.largest_node)
    chosen: dict[int, None] = {}
    taken: set[int] = set()
    for size, count in needs:
        slots = _slots(capacity, by_node, size, count, nodes, taken)
        if len(slots) < count:
            return None
        for _, node, ranks in sorted(slots)[:count]:
            taken.add(node)
            chosen.update(dict.fromkeys(ranks))
    return [candidates[rank] for rank in sorted(chosen)]


def _needs(request: Request, largest: int) -> list[tuple[int, int]]:
    """(milli-GPUs on one node, how many times)."""
    if request.pods is not None:
        return [(request.pod, request.pods)]
    if request.gpus <= largest * GPU:
        return [(request.gpus, 1)]
    count, rest = divmod(request.gpus, largest * GPU)
    return [(largest * GPU, count), (rest, 1)] if rest else [(largest * GPU, count)]


Slot = tuple[int, int, tuple[int, ...]]
"""(rank of the strongest candidate that must go, node, ranks of all that must)."""


def _slots(
    capacity: CapacityView,
    by_node: Mapping[int, Sequence[tuple[int, int]]],
    size: int,
    most: int,
    nodes: int,
    taken: Collection[int],
) -> list[Slot]:
    """Places of `size` milli-GPUs on one node, at most so many on each, and what they cost."""
    slots: list[Slot] = []
    several = not taken and most > 1
    for node in (*by_node, *_free_besides(capacity, by_node, size, most, nodes)):
        if node in taken:
            continue
        left = capacity.free_on(node) * GPU
        if size < GPU and capacity.shared_device(size, 1 << node) is not None:
            left = max(left, size)
        ranks: list[int] = []
        rest = iter(by_node.get(node, ()))
        for _ in range(most if several else 1):
            while left < size:
                entry = next(rest, None)
                if entry is None:
                    break
                ranks.append(entry[0])
                left += entry[1]
            if left < size:
                break
            slots.append((ranks[-1] if ranks else -1, node, tuple(ranks)))
            left -= size
    return slots


def _free_besides(
    capacity: CapacityView, by_node: Collection[int], size: int, most: int, nodes: int
) -> list[int]:
    """Nodes without candidates that have `size` free, as many as can be of use."""
    for node in by_node:
        nodes &= ~(1 << node)
    if size < GPU:
        place = capacity.shared_device(size, nodes)
        if place is not None:
            return [place[0]]
    found: list[int] = []
    for free in range(-(-size // GPU), capacity.largest_node + 1):
        if len(found) >= most:
            break
        found += bits(capacity.with_free[free] & nodes)
    return found


def needed(
    trial: CapacityView,
    placement: Placement,
    request: Request,
    victims: Sequence[JobView],
    *,
    at_least: int = 0,
    nodes: int = EVERYWHERE,
) -> list[JobView]:
    """Those of the victims, weakest first, without whom there is no room, or who give up less
    than `at_least` milli-GPUs together. Whoever is stronger is spared first.

    Args:
        trial: what is free without all of them; those who are spared are taken back in it.
    """
    spare = _gpus(victims) - at_least
    kept = []
    for victim in reversed(victims):
        allocation = allocation_of(victim)
        # On a node that is down nothing can be taken back.
        if victim.gpus <= spare and trial.fits(allocation):
            trial.take(allocation)
            if placement.find(trial, request, nodes=nodes) is not None:
                spare -= victim.gpus
                continue
            trial.give(allocation)
        kept.append(victim)
    return kept[::-1]
