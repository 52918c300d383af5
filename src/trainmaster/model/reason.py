"""Why a job waits: the level that holds it back, the numbers, and a sentence in plain words.

A reason is worked out on demand from the live state, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from trainmaster.model.event import Event
from trainmaster.model.job import Request
from trainmaster.model.ports import CapacityView, ClusterView, JobView
from trainmaster.model.text import printable
from trainmaster.model.units import to_gpus, to_seconds


class Level(StrEnum):
    """What holds a job back. Ordered from what no waiting mends to what the next event may."""

    NEVER_FITS = "never_fits"
    GPU_TYPE = "gpu_type"
    LABELS = "labels"
    TOPOLOGY = "topology"
    QUEUE_UNKNOWN = "queue_unknown"
    LIMIT = "limit"
    QUOTA = "quota"
    DEPENDENCY = "dependency"
    EARLIEST_START = "earliest_start"
    HEALTH = "health"
    ORDER = "order"
    PROMISE = "promise"
    PROTECTION = "protection"
    NODE_SHAPE = "node_shape"
    FRAGMENTATION = "fragmentation"
    GANG = "gang"
    CAPACITY = "capacity"
    STOPPING = "stopping"
    ROUND = "round"
    POLICY = "policy"


MEANINGS: Final[Mapping[Level, str]] = {
    Level.NEVER_FITS: "not even the empty cluster could take it",
    Level.GPU_TYPE: "there is no room on GPUs of the types that it names, or there are none",
    Level.LABELS: "there is no room on nodes with the labels that it names, or there are none",
    Level.TOPOLOGY: "there is room, but not within one place of the level that it names",
    Level.QUEUE_UNKNOWN: "its queue can't be read, so it has no limit that it could keep",
    Level.LIMIT: "a queue on its path holds as much as it may",
    Level.QUOTA: "its queue holds what it is entitled to, and others use the rest",
    Level.DEPENDENCY: "jobs that must end first have not ended",
    Level.EARLIEST_START: "it must not start yet",
    Level.HEALTH: "nodes that it needs are down or drained",
    Level.ORDER: "it stands behind a job that has to start first",
    Level.PROMISE: "there is room, but it is promised to another job, whom it would delay",
    Level.PROTECTION: "jobs that give way to it may not be stopped yet: their minimum run time",
    Level.NODE_SHAPE: "only some nodes are large enough, and those have no room",
    Level.FRAGMENTATION: "enough GPUs are free, but scattered over nodes",
    Level.GANG: "some of its pods would fit, but a gang starts whole",
    Level.CAPACITY: "too few GPUs are free",
    Level.STOPPING: "its GPUs are chosen, and jobs on them are still stopping",
    Level.ROUND: "the policy decides at set times only",
    Level.POLICY: "there is room, and the policy does not say why it leaves it waiting",
}
"""Each level in a few words."""

Numbers = Mapping[str, int]
"""By name; `…_gpus` are milli-GPUs, `…_ns` instants or times, all others counts."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What would help, tried out on a copy of the state.

    Args:
        change: what would have to change: gpus, pods, pod_gpus, gpu_types, labels, within, nodes
            (any would do); or jobs_end, nodes_return, job_withdrawn.
        sentence: in plain words.
        numbers: see `Numbers`.
        names: of the jobs or nodes in the sentence.
    """

    change: str
    sentence: str
    numbers: Numbers = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON: GPUs and seconds."""
        return {
            "change": self.change,
            "sentence": printable(self.sentence),
            "numbers": readable(self.numbers),
            "names": list(self.names),
        }


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits.

    Args:
        level: what holds it back.
        sentence: in plain words, with numbers; it goes on where "The job …" left off.
        numbers: see `Numbers`.
        names: of jobs, queues, nodes and GPU types in the sentence, by what they are.
        permanent: whether it waits for ever unless somebody changes the job, the queues or the nodes.
        hints: what would help.
        own: the end of the sentence that holds of this job alone, others waiting for the same.

    >>> reason = Reason(Level.CAPACITY, "waits for 2 GPUs; none is free", {"asked_gpus": 2000})
    >>> reason.as_dict()["numbers"]
    {'asked_gpus': 2}
    """

    level: Level
    sentence: str
    numbers: Numbers = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    permanent: bool = False
    hints: tuple[Hint, ...] = ()
    own: str = ""

    @property
    def common(self) -> str:
        """The sentence as far as it holds of all who wait for the same."""
        return self.sentence.removesuffix(self.own)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: GPUs and seconds."""
        return {
            "level": self.level.value,
            "sentence": printable(self.sentence),
            "permanent": self.permanent,
            "numbers": readable(self.numbers),
            "names": dict(self.names),
            "hints": [hint.as_dict() for hint in self.hints],
        }


def readable(numbers: Numbers) -> dict[str, int | float]:
    """The same in GPUs and seconds.

    >>> readable({"free_gpus": 500, "until_ns": 2_500_000_000, "nodes": 3})
    {'free_gpus': 0.5, 'until_s': 2.5, 'nodes': 3}
    """
    found: dict[str, int | float] = {}
    for name, value in numbers.items():
        if name.endswith("_gpus"):
            found[name] = to_gpus(value)
        elif name.endswith("_ns"):
            found[f"{name.removesuffix('_ns')}_s"] = to_seconds(value)
        else:
            found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that might help, worth a try.

    Args:
        change: as in `Hint`.
        options: requests, the one nearest to what was asked first. If one of them would start, so
            would those behind it: the first that would is looked for by halving.
        relaxed: whether any nodes would do.
        events: what would have to happen.
        names: of the jobs or nodes that it would happen to.
    """

    change: str
    options: Sequence[Request]
    relaxed: bool = False
    events: tuple[Event, ...] = ()
    names: tuple[str, ...] = ()


class Glance(ClusterView, Protocol):
    """A view to look at and not to act on: its steps raise `PolicyError`."""

    @property
    def empty(self) -> CapacityView:
        """The capacity if nothing ran and every node were healthy."""
        ...

    def relaxed(self, job: JobView) -> bool:
        """Whether the job has waited so long that it accepts any nodes."""
        ...
