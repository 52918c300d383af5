"""Which GPUs a job holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Share(NamedTuple):
    """The part of an allocation on one node.

    Args:
        node: index into `Cluster.nodes`.
        devices: bit mask of the node's devices; 0 in a pooled cluster.
        milli: milli-GPUs held here. With whole devices, 1000 for each bit; a fraction
            of a GPU has one bit and less than 1000.
    """

    node: int
    devices: int
    milli: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """The GPUs of one gang, node by node.

    >>> Allocation.of([Share(node=0, devices=0b11, milli=2000), Share(3, 0b1, 1000)]).milli
    3000
    """

    shares: tuple[Share, ...]
    milli: int

    @classmethod
    def of(cls, shares: list[Share]) -> Allocation:
        """An allocation of these shares, its total worked out."""
        return cls(tuple(shares), sum(share.milli for share in shares))

    @property
    def nodes(self) -> tuple[int, ...]:
        """Indices of the nodes."""
        return tuple(share.node for share in self.shares)


def lowest_devices(mask: int, count: int) -> int:
    """The `count` lowest set bits of `mask`.

    >>> bin(lowest_devices(0b10111, 2))
    '0b11'
    """
    taken = 0
    for _ in range(count):
        bit = mask & -mask
        taken |= bit
        mask ^= bit
    return taken


def bits(mask: int) -> list[int]:
    """Positions of the set bits, lowest first.

    >>> bits(0b1010)
    [1, 3]
    """
    positions = []
    while mask:
        bit = mask & -mask
        positions.append(bit.bit_length() - 1)
        mask ^= bit
    return positions
