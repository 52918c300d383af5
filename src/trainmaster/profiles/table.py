"""The speeds of one model on one type of GPU, and what holds between and beyond the listed ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class SpeedTable:
    """Speed by number of GPUs and number of nodes, as far as it was measured.

    `at` gives the speed of any placement:

    - **Nodes between the listed counts**: the next higher listed count. Training slows down
      when the first link between nodes is crossed, so a straight line from one node to many
      would be too kind. Nodes beyond the last listed count: the last. (Chronus' simulator
      takes the same.) So the fastest listed placement stands for fewer nodes than listed.
    - **GPUs between the listed sizes**: the straight line between the two neighbours, each on
      the given number of nodes.
    - **GPUs beyond the largest listed size**: the gang is seen as several gangs of that size,
      each on its part of the nodes (rounded up). 16 GPUs on 2 nodes, in a table that ends at 8
      GPUs, are as 8 on 1: a gang that fills its nodes is not slowed down for being large.
    - **GPUs below the smallest listed size**: the smallest.

    Args:
        speeds: number of GPUs to number of nodes to speed; at least one of each. 0 says that
            the model does not run there (out of memory).

    >>> table = SpeedTable({2: {1: 1.0, 2: 0.8}, 4: {1: 1.0, 2: 0.6, 4: 0.3}})
    >>> table.at(4, 2), table.at(4, 3), table.at(3, 2), table.at(8, 2), table.at(8, 3)
    (0.6, 0.3, 0.7, 1.0, 0.6)
    """

    speeds: Mapping[int, Mapping[int, float]]

    def __post_init__(self) -> None:
        ordered = {gpus: dict(sorted(by_nodes.items())) for gpus, by_nodes in sorted(self.speeds.items())}
        if not ordered or not all(ordered.values()):
            raise ValueError("a speed table needs at least one size, and one number of nodes for each")
        object.__setattr__(self, "speeds", ordered)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The listed numbers of GPUs, ascending."""
        return tuple(self.speeds)

    def at(self, gpus: float, nodes: int, sizes: tuple[int, ...] | None = None) -> float:
        """Speed of `gpus` GPUs on `nodes` nodes; 0 where the model does not run.

        Args:
            gpus: number of GPUs, above 0.
            nodes: number of nodes, at least 1.
            sizes: use these of the listed sizes only, ascending; None = all.
        """
        sizes = sizes or self.sizes
        if gpus > sizes[-1]:
            parts = ceil(gpus / sizes[-1])
            return self._listed(sizes[-1], ceil(nodes / parts))
        place = bisect_left(sizes, gpus)
        high = self._listed(sizes[place], nodes)
        if place == 0 or sizes[place] == gpus:
            return high
        low = self._listed(sizes[place - 1], nodes)
        if low == 0.0 or high == 0.0:
            return 0.0
        share = (gpus - sizes[place - 1]) / (sizes[place] - sizes[place - 1])
        return low + share * (high - low)

    def _listed(self, gpus: int, nodes: int) -> float:
        by_nodes = self.speeds[gpus]
        return by_nodes[next((listed for listed in by_nodes if listed >= nodes), max(by_nodes))]
