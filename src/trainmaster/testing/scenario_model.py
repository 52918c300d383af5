"""What a case says, read and checked. Times are ns, GPUs milli-GPUs, as everywhere inside."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trainmaster.model.cluster import Cluster

HOLDING: Final = ("starting", "running", "stopping")
ENDED: Final = ("finished", "failed", "cancelled", "missed")
STATES: Final = ("unsubmitted", "pending", *HOLDING, *ENDED)
"""States of a job, as its executor sees them; missed = ended because its deadline can't be met."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    **{state: (state,) for state in STATES},
    "holding": HOLDING,
    "ended": ENDED,
}
"""Words for states, each with the states that it covers. `partly` is beside them: holding GPUs,
but fewer than the gang needs."""

PARTLY: Final = "partly"


@dataclass(frozen=True)
class Bound:
    """A number that is expected, or what it must not exceed or fall below.

    >>> Bound(5).holds(5), Bound(5, "<=").holds(6)
    (True, False)
    """

    value: int
    relation: str = "="

    def holds(self, found: int) -> bool:
        """Whether a number is as expected."""
        return RELATIONS[self.relation](found, self.value)

    @property
    def words(self) -> str:
        """What stands before the number in a message."""
        return "" if self.relation == "=" else f"{self.relation} "


RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class CaseJob:
    """One entry of `jobs`, or one of its copies; see `scenario_keys.JOB` for the keys.

    Args:
        name: unique in its case.
        group: the entry that it is a copy of; its own name where there is only one.
        at: when it is submitted.
        runs: how long it really runs.
        pods: (number of pods, milli-GPUs of each); None = `gpus`, and the placement decides.
        extra: keys of features that are still to come.
    """

    name: str
    group: str
    at: int = 0
    runs: int = 0
    gpus: int = 0
    pods: tuple[int, int] | None = None
    queue: str = ""
    user: str = ""
    priority: int = 0
    type: tuple[str, ...] = ()
    limit: int | None = None
    estimate: int | None = None
    preemptible: bool = True
    stops_in: int | None = None
    speed: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def milli(self) -> int:
        """Milli-GPUs of the whole gang."""
        return self.gpus if self.pods is None else self.pods[0] * self.pods[1]

    @property
    def least(self) -> int:
        """Fewest milli-GPUs with which the gang is whole."""
        if self.pods is None or "min_pods" not in self.extra:
            return self.milli
        return int(self.extra["min_pods"]) * self.pods[1]


@dataclass(frozen=True)
class Step:
    """Something that happens from outside: `verb` is a key of `scenario_keys.STEP`."""

    at: int
    verb: str
    names: tuple[str, ...]
    line: int
    to: int | None = None


@dataclass(frozen=True)
class Moment:
    """What must hold once all of instant `at` has happened; `at` None: at the end."""

    at: int | None
    line: int
    checks: Mapping[str, Any]


@dataclass(frozen=True)
class Situation:
    """Jobs in states that must never meet."""

    line: int
    states: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scene:
    """One part of a case: a cluster, jobs, what happens, and what must come of it.

    Args:
        title: what is right, in one line.
        policies: specifications; empty = every policy that claims what it needs.
        needs: features that must be there.
        groups: jobs by the entry that made them.
        weights: entitlement by tenant, from `queues` and from a cluster file.
    """

    title: str
    cluster: Cluster
    jobs: tuple[CaseJob, ...]
    policies: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    placements: tuple[str, ...] = ("pack",)
    predictor: str = "oracle"
    costs: Mapping[str, float] = field(default_factory=dict)
    min_run: int | None = None
    round: int = 0
    relax: int | None = None
    seed: int = 0
    until: int | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    moments: tuple[Moment, ...] = ()
    never: tuple[Situation, ...] = ()


@dataclass(frozen=True)
class ReaderScene:
    """A small log and what its reader must make of it.

    Args:
        files: content by name; written into an empty folder.
        read: the one that is the trace.
        expect: see `scenario_keys.READER_EXPECT`.
    """

    title: str
    files: Mapping[str, str]
    read: str
    format: str
    expect: Mapping[str, Any]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcessScene:
    """A command that is run several times, each in an empty folder with the same files.

    Args:
        run: words of the command, without `trainmaster`.
        environments: what is set for each time it is run.
        expect: see `scenario_keys.PROCESS_EXPECT`.
    """

    title: str
    files: Mapping[str, str]
    run: tuple[str, ...]
    environments: tuple[Mapping[str, str], ...]
    expect: Mapping[str, Any]
    needs: tuple[str, ...] = ()


AnyScene = Scene | ReaderScene | ProcessScene


@dataclass(frozen=True)
class Case:
    """One file.

    Args:
        number: as given, for example "35"; empty = none.
        title: of the first part.
        parts: one for each document of the file.
    """

    path: Path
    number: str
    title: str
    parts: tuple[AnyScene, ...]

    @property
    def label(self) -> str:
        """Number, or the file's name where it has none."""
        return self.number or self.path.stem
