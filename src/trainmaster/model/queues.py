"""Queues: who may hold how much of the cluster, as a tree.

A job belongs to the leaf that its `Job.tenant` names; what it holds counts for that
queue and for every queue above it. GPUs are integer milli-GPUs throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.text import is_clean
from trainmaster.model.units import GPU, to_gpus

Reclaim = Literal["quota", "fair-share", "none"]
"""How far a queue may stop jobs of others to get GPUs back: up to its guarantee, up to
its fair share, or not at all."""

LEAST_WEIGHT: Final = 1e-6
MOST_WEIGHT: Final = 1e9


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, or a group of queues.

    Args:
        name: unique within the tree.
        parent: name of the queue above; None = at the top.
        guaranteed: milli-GPUs that are its own whenever it wants them.
        limit: milli-GPUs that its running jobs hold at most; None = no limit.
        weight: its part of what nobody is guaranteed or who is guaranteed doesn't use,
            relative to its siblings'; 0 = only what no sibling wants.
        priority: siblings of a larger one get what they want beyond guarantees first.
        reclaim: see `Reclaim`.

    Raises:
        InputError: a number that can't be, or a guarantee above the limit.

    >>> Queue("vision", guaranteed=8000, limit=4000)
    Traceback (most recent call last):
    ...
    trainmaster.model.errors.InputError: queue vision is guaranteed 8 GPUs, above its limit of 4 (raise \
the limit or lower the guarantee)
    """

    name: str
    parent: str | None = None
    guaranteed: int = 0
    limit: int | None = None
    weight: float = 1
    priority: int = 0
    reclaim: Reclaim = "quota"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not is_clean(self.name):
            raise InputError(f"{self.name!r} is not a name of a queue", mend="give it some text")
        for what, milli in (("guaranteed", self.guaranteed), ("limit", self.limit)):
            if milli is not None and (not _is_whole(milli) or milli < 0):
                raise InputError(f"queue {self.name}: {what} is {milli!r}", mend="give whole milli-GPUs >= 0")
        if not _is_whole(self.priority):
            raise InputError(f"queue {self.name}: priority is {self.priority!r}", mend="give a whole number")
        if not _is_weight(self.weight):
            raise InputError(
                f"queue {self.name}: weight is {self.weight!r}",
                mend=f"give 0, or a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}",
            )
        if self.reclaim not in get_args(Reclaim):
            raise InputError(
                f"queue {self.name}: reclaim is {self.reclaim!r}", mend="quota, fair-share or none"
            )
        if self.limit is not None and self.guaranteed > self.limit:
            raise InputError(
                f"queue {self.name} is guaranteed {to_gpus(self.guaranteed)} GPUs, "
                f"above its limit of {to_gpus(self.limit)}",
                mend="raise the limit or lower the guarantee",
            )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_weight(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return False
    return value == 0 or LEAST_WEIGHT <= value <= MOST_WEIGHT


@dataclass(frozen=True, slots=True)
class QueueTree:
    """Queues in a fixed order, each below its parent.

    Args:
        queues: at least one; parents may stand before or after their children.

    Attributes:
        roots: the queues at the top.
        leaves: the queues that jobs may name.

    Raises:
        InputError: no queues, a name twice, an unknown parent, or a cycle.

    >>> tree = QueueTree((Queue("research"), Queue("vision", "research"), Queue("ads")))
    >>> [queue.name for queue in tree.path("vision")]
    ['vision', 'research']
    >>> tree.refusal("vision"), tree.refusal("research")
    ('', 'queue research has queues of its own: name one of vision')
    """

    queues: tuple[Queue, ...]
    roots: tuple[Queue, ...] = field(init=False, repr=False, compare=False)
    leaves: tuple[Queue, ...] = field(init=False, repr=False, compare=False)
    _paths: dict[str, tuple[Queue, ...]] = field(init=False, repr=False, compare=False)
    _children: dict[str | None, tuple[Queue, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.queues:
            raise InputError("there are no queues", mend="name at least one")
        by_name: dict[str, Queue] = {}
        below: dict[str | None, list[Queue]] = {}
        for queue in self.queues:
            if queue.name in by_name:
                raise InputError(f"queue {queue.name} stands twice", mend="make names of queues unique")
            by_name[queue.name] = queue
            below.setdefault(queue.parent, []).append(queue)
        paths: dict[str, tuple[Queue, ...]] = {}
        for queue in self.queues:
            _find_path(queue, by_name, paths)
        children = {name: tuple(members) for name, members in below.items()}
        leaves = tuple(queue for queue in self.queues if queue.name not in children)
        for name, value in (
            ("roots", children[None]),
            ("leaves", leaves),
            ("_paths", paths),
            ("_children", children),
        ):
            object.__setattr__(self, name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __getitem__(self, name: str) -> Queue:
        """The queue of this name.

        Raises:
            InputError: there is none.
        """
        return self.path(name)[0]

    def path(self, name: str) -> tuple[Queue, ...]:
        """The queue and those above it, itself first.

        Raises:
            InputError: there is no such queue.
        """
        try:
            return self._paths[name]
        except KeyError:
            raise InputError(f"there is no queue {name!r}", mend=nearest(name, self._paths)) from None

    def children(self, name: str | None) -> tuple[Queue, ...]:
        """The queues right below; None = below the cluster itself: the roots."""
        return self._children.get(name, ())

    def refusal(self, tenant: str, milli: int = 0) -> str:
        """Why a job of this tenant that asks so many milli-GPUs may never start; "" = it may.

        A job whose limits are unknown is refused: whoever is not in the tree gets nothing.

        >>> tree = QueueTree((Queue("lab", limit=8000), Queue("vision", "lab")))
        >>> tree.refusal("vision", 9000)
        'queue lab may hold 8 GPUs at most; the job asks 9'
        >>> tree.refusal("vison")
        "there is no queue 'vison' (did you mean 'vision'?)"
        """
        path = self._paths.get(tenant)
        if path is None:
            if not tenant:
                return "the job names no queue, and only jobs of a queue may start"
            return f"there is no queue {tenant!r} ({nearest(tenant, [leaf.name for leaf in self.leaves])})"
        if tenant in self._children:
            inside = ", ".join(queue.name for queue in self._children[tenant])
            return f"queue {tenant} has queues of its own: name one of {inside}"
        for queue in path:
            if queue.limit is not None and (queue.limit == 0 or milli > queue.limit):
                asks = f"; the job asks {to_gpus(milli)}" if milli else ""
                return f"queue {queue.name} may hold {to_gpus(queue.limit)} GPUs at most{asks}"
        return ""

    def warnings(self, capacity: int) -> list[str]:
        """What is allowed and yet hardly meant, one sentence each.

        Args:
            capacity: milli-GPUs of the cluster.

        >>> QueueTree((Queue("a", guaranteed=8000), Queue("b", weight=0))).warnings(4000)
        ['the cluster has 4 GPUs, but a, b are guaranteed 8 together', 'queue b has weight 0: it gets only \
what no other queue wants']
        """
        found = _overcommitted("the cluster has", capacity, self.roots)
        for queue in self.queues:
            inside = self.children(queue.name)
            if inside:
                found += _overcommitted(f"queue {queue.name} is guaranteed", queue.guaranteed, inside)
            found += self._doubts(queue, capacity)
        return found

    def _doubts(self, queue: Queue, capacity: int) -> list[str]:
        found = []
        if queue.weight == 0:
            own = f"beyond its {to_gpus(queue.guaranteed)} guaranteed GPUs " if queue.guaranteed else ""
            found.append(f"queue {queue.name} has weight 0: {own}it gets only what no other queue wants")
        if queue.limit is None:
            return found
        limit = to_gpus(queue.limit)
        if queue.limit == 0:
            found.append(f"queue {queue.name} has a limit of 0: none of its jobs can ever start")
        elif queue.limit < GPU:
            found.append(
                f"queue {queue.name} has a limit of {limit} GPUs: only jobs on a part of a GPU can start"
            )
        elif queue.limit > capacity:
            found.append(
                f"queue {queue.name} has a limit of {limit} GPUs, "
                f"which the {to_gpus(capacity)} of the cluster never reach"
            )
        return found


def _find_path(queue: Queue, by_name: dict[str, Queue], paths: dict[str, tuple[Queue, ...]]) -> None:
    """Work out the way up from a queue, and from those on it."""
    way: list[Queue] = []
    seen: set[str] = set()
    here: Queue | None = queue
    while here is not None and here.name not in paths:
        if here.name in seen:
            around = " below ".join([*(each.name for each in way), here.name])
            raise InputError(f"queues in a circle: {around}", mend="give one of them no parent")
        way.append(here)
        seen.add(here.name)
        if here.parent is not None and here.parent not in by_name:
            raise InputError(
                f"queue {here.name} stands below {here.parent!r}, which is no queue",
                mend=nearest(here.parent, by_name),
            )
        here = None if here.parent is None else by_name[here.parent]
    known = () if here is None else paths[here.name]
    for each in reversed(way):
        known = paths[each.name] = (each, *known)


def _overcommitted(owner: str, milli: int, queues: tuple[Queue, ...]) -> list[str]:
    total = sum(queue.guaranteed for queue in queues)
    if total <= milli:
        return []
    names = ", ".join(queue.name for queue in queues)
    are = "is" if len(queues) == 1 else "are"
    together = " together" if len(queues) > 1 else ""
    return [f"{owner} {to_gpus(milli)} GPUs, but {names} {are} guaranteed {to_gpus(total)}{together}"]
