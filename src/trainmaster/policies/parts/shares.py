"""Shares of a tree of queues: what each is entitled to, given what all of them want.

At each level of the tree, first every queue gets what it wants up to its guarantee; then
what is left goes by priority, and among equals by weight, up to what each wants and may
have. Queues of weight 0 come last. Queues share what their parent got in the same way.

Shares are whole milli-GPUs. Their rounding is that of handing out one milli-GPU after
the other, each to the queue that has the least beyond its guarantee for its weight
(equals by name). Unlike rounding fractions by the largest remainder, this never takes from one
queue because another asks less, or because the cluster has grown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from math import exp2, expm1, gcd, lcm, log
from types import MappingProxyType

from trainmaster.model.errors import EngineError, InputError
from trainmaster.model.queues import Queue, QueueTree


def fair_shares(tree: QueueTree, demand: Mapping[str, int], capacity: int) -> dict[str, int]:
    """The fair share of every queue.

    Args:
        tree: the queues.
        demand: milli-GPUs that each leaf wants, running and waiting; 0 where nothing is said.
        capacity: milli-GPUs to share.

    Returns:
        Milli-GPUs by queue, in the order of the tree; a group's is the sum of its queues'.

    Raises:
        InputError: demand of what is no leaf, or a negative number.

    >>> tree = QueueTree((Queue("q1", guaranteed=10_000, weight=3), Queue("q2", guaranteed=10_000)))
    >>> fair_shares(tree, {"q1": 100_000, "q2": 100_000}, 100_000)
    {'q1': 70000, 'q2': 30000}
    """
    shares = FairShares(tree, capacity)
    for queue, milli in demand.items():
        shares.ask(queue, milli)
    return dict(shares.now)


class FairShares:
    """Fair shares that are kept while demand changes; see `fair_shares`.

    Only a change that can matter is followed by a new division: a queue that has less than
    it wants may want more, or less, down to what it has, and no share moves.

    Args:
        tree: the queues; none wants anything at first.
        capacity: milli-GPUs to share.

    >>> shares = FairShares(QueueTree((Queue("a"), Queue("b"))), 8000)
    >>> shares.ask("a", 6000)
    >>> shares.ask("b", 6000)
    >>> shares.now["a"], shares.now["b"]
    (4000, 4000)
    """

    def __init__(self, tree: QueueTree, capacity: int) -> None:
        self._parents = [queue for queue in _downwards(tree) if tree.children(queue.name)]
        self._top = _Level(tree.roots)
        self._levels = {queue.name: _Level(tree.children(queue.name)) for queue in self._parents}
        self._tree = tree
        self._limits = {leaf.name: leaf.limit for leaf in tree.leaves}
        # What each queue wants, as far as its limit lets it have that.
        self._wanted = {queue.name: 0 for queue in tree.queues}
        self._shares = dict(self._wanted)
        self._stale = False
        self._capacity = 0
        self.resize(capacity)

    def resize(self, capacity: int) -> None:
        """Share so many milli-GPUs from now on."""
        if capacity < 0:
            raise InputError(f"there are {capacity} milli-GPUs to share", mend="give a number >= 0")
        self._stale = self._stale or capacity != self._capacity
        self._capacity = capacity

    def ask(self, queue: str, milli: int) -> None:
        """A leaf wants so many milli-GPUs from now on, running and waiting.

        Raises:
            InputError: not a leaf, or a negative number.
        """
        if queue not in self._limits:
            raise InputError(self._tree.refusal(queue))
        if milli < 0:
            raise InputError(f"queue {queue} wants {milli} milli-GPUs", mend="give a number >= 0")
        limit = self._limits[queue]
        wanted = milli if limit is None else min(milli, limit)
        before = self._wanted[queue]
        self._wanted[queue] = wanted
        # A stale share is no ground to keep anything, nor is it needed: all are made anew.
        if wanted != before and not self._stale:
            share = self._shares[queue]
            self._stale = not (share < before and share <= wanted)

    @property
    def now(self) -> Mapping[str, int]:
        """Milli-GPUs by queue, as a view of what the last `ask` and `resize` left."""
        if self._stale:
            self._divide()
            self._stale = False
        return MappingProxyType(self._shares)

    def _divide(self) -> None:
        wanted, shares = self._wanted, self._shares
        for parent in reversed(self._parents):
            total = sum([wanted[name] for name in self._levels[parent.name].names])
            wanted[parent.name] = total if parent.limit is None else min(total, parent.limit)
        self._top.divide(self._capacity, wanted, shares)
        for parent in self._parents:
            self._levels[parent.name].divide(shares[parent.name], wanted, shares)


def _downwards(tree: QueueTree) -> list[Queue]:
    """All queues, parents before children."""
    found = list(tree.roots)
    for queue in found:
        found.extend(tree.children(queue.name))
    return found


class _Level:
    """Siblings, and the bands in which they are served beyond their guarantees."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        queues = sorted(queues, key=lambda queue: queue.name)
        self.names = [queue.name for queue in queues]
        self._guaranteed = [(queue.name, queue.guaranteed) for queue in queues]
        # When less is there than is guaranteed, all guarantees shrink alike.
        self._short = _Band((queue.name, queue.guaranteed) for queue in queues if queue.guaranteed)
        keys = sorted({(queue.weight == 0, -queue.priority) for queue in queues})
        self._bands = [
            _Band(
                (queue.name, queue.weight or 1)
                for queue in queues
                if (queue.weight == 0, -queue.priority) == key
            )
            for key in keys
        ]

    def divide(self, amount: int, wanted: Mapping[str, int], shares: dict[str, int]) -> None:
        """Write the siblings' shares of `amount`."""
        total = 0
        for name, guaranteed in self._guaranteed:
            milli = wanted[name]
            shares[name] = milli = milli if milli < guaranteed else guaranteed
            total += milli
        left = amount - total
        if left < 0:
            firm = {name: shares[name] for name in self.names}
            shares.update(dict.fromkeys(self.names, 0))
            self._short.fill(amount, firm, shares)
            return
        for band in self._bands:
            if left == 0:
                return
            left -= band.fill(left, wanted, shares)


class _Band:
    """Queues among which GPUs are divided by weight, in the order of their names.

    Weights become whole numbers of the same proportions. Levels (milli-GPUs by weight) are
    compared as integers: two different fractions of denominators up to w are at least 1 / w²
    apart, so with twice the bits of w behind the point their whole parts differ too.
    """

    def __init__(self, weights: Iterable[tuple[str, float]]) -> None:
        # As written: 0.1 is a tenth, not the binary fraction next to it.
        exact = [(name, Fraction(str(weight))) for name, weight in weights]
        unit = lcm(*(weight.denominator for _, weight in exact))
        whole = [(name, int(weight * unit)) for name, weight in exact]
        common = gcd(*(weight for _, weight in whole)) or 1
        self._weights = [(name, weight // common) for name, weight in whole]
        self._shift = 2 * max([weight.bit_length() for _, weight in self._weights], default=0)

    def fill(self, amount: int, caps: Mapping[str, int], shares: dict[str, int]) -> int:
        """Add to shares until the amount is used up or all have their caps; returns the sum added."""
        hungry = [
            (name, weight, room) for name, weight in self._weights if (room := caps[name] - shares[name]) > 0
        ]
        total = sum([room for _, _, room in hungry])
        if total <= amount:
            for name, _, room in hungry:
                shares[name] += room
            return total
        given = _poured(amount - len(hungry), hungry, self._shift)
        _drip(amount - sum(given), given, hungry, self._shift)
        for (name, _, _), milli in zip(hungry, given, strict=True):
            shares[name] += milli
        return amount


_Hungry = list[tuple[str, int, int]]
"""(name, weight, milli-GPUs it can still take)."""


def _poured(amount: int, hungry: _Hungry, shift: int) -> list[int]:
    """What each has once the water stands where `amount`, less than all want, brings it.

    Every started milli-GPU counts, so it is up to one for each more than `amount` together.
    """
    given = [0] * len(hungry)
    if amount <= 0:
        return given
    weights = sum([weight for _, weight, _ in hungry])
    order = sorted([((room << shift) // weight, at) for at, (_, weight, room) in enumerate(hungry)])
    full = 0
    for _, at in order:
        _, weight, room = hungry[at]
        if room * weights > amount * weight:
            break
        given[at] = room
        amount -= room
        weights -= weight
        full += 1
    for _, at in order[full:]:
        _, weight, room = hungry[at]
        milli = -(-amount * weight // weights)
        given[at] = milli if milli < room else room
    return given


def _drip(amount: int, given: list[int], hungry: _Hungry, shift: int) -> None:
    """Hand out the rest, one milli-GPU after the other, to whom stands lowest."""
    heap = [
        ((given[at] << shift) // weight, at)
        for at, (_, weight, room) in enumerate(hungry)
        if given[at] < room
    ]
    heapify(heap)
    for _ in range(amount):
        _, at = heap[0]
        _, weight, room = hungry[at]
        given[at] += 1
        if given[at] < room:
            heapreplace(heap, ((given[at] << shift) // weight, at))
        else:
            heappop(heap)


class DecayedUsage:
    """What queues have used, half of which is forgotten after each half-life.

    Usage is integrated when what a queue holds changes; reading it changes nothing, so how
    often it is read makes no difference to any figure.

    Args:
        half_life: nanoseconds; None = nothing is ever forgotten, and figures are whole numbers.

    Raises:
        InputError: a half-life that is not above 0.

    >>> usage = DecayedUsage(half_life=10)
    >>> usage.hold("a", 1000, now=0)
    >>> usage.hold("a", 0, now=0 + 10)
    >>> usage.used("a", now=20) / usage.used("a", now=10)
    0.5
    """

    def __init__(self, half_life: int | None) -> None:
        if half_life is not None and half_life <= 0:
            raise InputError(f"the half-life is {half_life} ns", mend="give a time above 0, or none")
        self.half_life = half_life
        # (instant, usage at that instant, milli-GPUs held since), by queue.
        self._accounts: dict[str, tuple[int, float, int]] = {}

    def hold(self, queue: str, milli: int, now: int) -> None:
        """The queue holds so many milli-GPUs from instant `now` (ns) on.

        Raises:
            EngineError: `now` lies before an earlier change, or the number is negative.
        """
        if milli < 0:
            raise EngineError(f"queue {queue} holds {milli} milli-GPUs")
        self._accounts[queue] = (now, self.used(queue, now), milli)

    def used(self, queue: str, now: int) -> float:
        """Milli-GPU nanoseconds used until `now` (ns), decayed; 0 for a queue never heard of.

        Raises:
            EngineError: `now` lies before the last change.
        """
        since, usage, milli = self._accounts.get(queue, (now, 0, 0))
        if now < since:
            raise EngineError(f"usage of queue {queue} at {now} ns was asked after that at {since} ns")
        if self.half_life is None:
            return usage + milli * (now - since)
        ages = (now - since) / self.half_life
        gained = milli * (self.half_life / log(2)) * -expm1(-ages * log(2))
        return usage * exp2(-ages) + gained
