"""A speed profile in memory, and the two questions that it answers: how fast, how long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.job import Job, Workload
from trainmaster.model.units import GPU, to_ns
from trainmaster.profiles.table import SpeedTable

ITERATIONS_PER_SECOND: Final = "iterations_per_second"
"""Unit of a profile whose speeds are absolute: it also gives durations."""

RELATIVE: Final = "relative"
"""Unit of a profile whose speeds only compare placements: 1.0 is the reference placement of the same size."""

UNITS: Final = (ITERATIONS_PER_SECOND, RELATIVE)

ANY: Final = "any"
"""What files call the GPU type of a model whose speeds hold for all types; "" in memory."""

LONGEST_S: Final = 9_000_000_000
"""Longest duration in seconds (285 years) that is taken for one."""

_SIZED: Final = re.compile(r"(.*\S)\s*\(batch size (\d{1,9})\)")


class ModelKey(NamedTuple):
    """What a profile lists speeds for: a model, at one batch size or (None) at any."""

    model: str
    batch_size: int | None = None

    @classmethod
    def parse(cls, text: str) -> ModelKey:
        """Gavel and Shockwave write the batch size into the name.

        >>> ModelKey.parse("ResNet-50 (batch size 32)"), ModelKey.parse("A3C")
        (ModelKey(model='ResNet-50', batch_size=32), ModelKey(model='A3C', batch_size=None))
        """
        sized = _SIZED.fullmatch(text)
        return cls(sized[1], int(sized[2])) if sized else cls(text)

    @classmethod
    def of(cls, workload: Workload) -> ModelKey:
        """The key of a job's workload; its own batch size goes before one in the name."""
        named = cls.parse(workload.model)
        return named if workload.batch_size is None else cls(named.model, workload.batch_size)

    def __str__(self) -> str:
        return self.model if self.batch_size is None else f"{self.model} (batch size {self.batch_size})"


@dataclass(frozen=True)
class Profile:
    """Speeds of models by GPU type, number of GPUs and number of nodes.

    The **reference placement** of a job is the fewest listed nodes for its size, on the
    reference GPU type; there its speed is 1.0, and its recorded duration holds. A model is
    looked up with the job's batch size first and then, when it is listed for any batch size, without.

    Args:
        models: tables by model and by GPU type; the type "" stands for any other.
        unit: `ITERATIONS_PER_SECOND` or `RELATIVE`.
        reference: the GPU type on which recorded durations hold; "" = the type that is
            fastest most often (`fastest_type`).
        name: what the profile is called, for titles.
        source: where its figures come from, in one line.
        format: name of the reader that read it; "" = made in memory.
        path: the file that it was read from.

    Raises:
        InputError: no models, an unknown unit, or a reference that is no type of the profile.
    """

    models: Mapping[ModelKey, Mapping[str, SpeedTable]]
    unit: str
    reference: str = ""
    name: str = ""
    source: str = ""
    format: str = field(default="", compare=False)
    path: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        file = self.path or None
        if not self.models:
            raise InputError("lists no models", file=file, column="models", mend="list at least one")
        if self.unit not in UNITS:
            message = f"{self.unit!r} is no unit of speed"
            raise InputError(message, file=file, column="unit", mend=nearest(self.unit, UNITS))
        if ANY in self.gpu_types:
            raise InputError(f"{ANY!r} is no name of a GPU type", file=file, mend="use '' for any type")
        reference = self.reference or fastest_type(self.models)
        if reference and reference not in self.gpu_types:
            message = f"GPU type {reference!r} is not listed for any model"
            known = f"known: {', '.join(self.gpu_types)}" if self.gpu_types else "leave it out"
            raise InputError(message, file=file, column="reference", mend=known)
        object.__setattr__(self, "reference", reference)

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """Names of the GPU types that are told apart, sorted; empty when none are."""
        return tuple(sorted({name for tables in self.models.values() for name in tables if name}))

    def gpu_type(self, name: str) -> str:
        """The profile's spelling of a GPU type: upper and lower case do not matter, "" is the reference.

        Raises:
            InputError: the profile tells types apart and lists no such type.
        """
        if not self.gpu_types or not name:
            return self.reference
        spelled = {known.casefold(): known for known in self.gpu_types}.get(name.casefold())
        if spelled is None:
            raise InputError(
                f"GPU type {name!r} is not in the profile",
                file=self.path or None,
                mend=f"known: {', '.join(self.gpu_types)}",
            )
        return spelled

    def speed(self, job: Job, nodes: int, gpu_type: str) -> float:
        """Progress per unit of time, relative to the job's reference placement; above 0.

        1.0 for a job whose model (or GPU type for that model) the profile does not list;
        `unknown` counts these jobs. See `SpeedTable` for sizes and nodes that are not listed;
        a fraction of a GPU is as fast as one.

        Args:
            job: its model, batch size and number of GPUs matter.
            nodes: number of nodes that it runs on, at least 1.
            gpu_type: type of its GPUs; "" = the reference type.

        Raises:
            InputError: the profile lists no such GPU type, or says that the model does not
                run on it (speed 0).
        """
        pair = self._tables(job, gpu_type)
        if pair is None:
            return 1.0
        table, reference, sizes = pair
        gpus = job.request.gpus / GPU
        speed = table.at(gpus, nodes, sizes)
        base = reference.at(gpus, 1, sizes)
        if speed == 0.0:
            raise InputError(
                f"job {job.id} ({_label(job)}) does not run on {gpus:g} GPU{'' if gpus == 1 else 's'}"
                f"{f' of type {gpu_type}' if gpu_type else ''}: its listed speed is 0",
                file=self.path or None,
                mend="name the GPU types it can use in the trace's column gpu_type",
            )
        return speed / base if base else 1.0

    def runs_on(self, job: Job, gpu_type: str) -> bool:
        """Whether `speed` has an answer: False where the profile says that the model does not run (speed 0).

        Raises:
            InputError: the profile lists no such GPU type.
        """
        pair = self._tables(job, gpu_type)
        return pair is None or pair[0].at(job.request.gpus / GPU, 1, pair[2]) > 0.0

    def throughput(self, workload: Workload, gpus: float, nodes: int, gpu_type: str) -> float | None:
        """Iterations per second, 0 where the model does not run.

        None when unknown: the speeds are relative, the model is not listed for that GPU type,
        or `gpus` lies outside the listed sizes (inside, see `SpeedTable`).

        Raises:
            InputError: the profile lists no such GPU type.
        """
        table = _table(self._by_type(workload), self.gpu_type(gpu_type))
        if self.unit != ITERATIONS_PER_SECOND or table is None:
            return None
        return table.at(gpus, nodes) if table.sizes[0] <= gpus <= table.sizes[-1] else None

    def duration(self, job: Job, gpu_type: str) -> int | None:
        """Run time on the fewest listed nodes, nanoseconds: iterations / throughput.

        None when unknown: the job has no iterations, the model does not run there, or
        `throughput` is unknown. With the reference type (or "") this is the run time at speed 1.0.

        Raises:
            InputError: the profile lists no such GPU type.
        """
        workload = job.workload
        if workload is None or workload.iterations is None:
            return None
        rate = self.throughput(workload, job.request.gpus / GPU, 1, gpu_type)
        if not rate:
            return None
        seconds = workload.iterations / rate
        return max(1, to_ns(seconds)) if 0 < seconds <= LONGEST_S else None

    def unknown(self, jobs: Iterable[Job], gpu_types: Iterable[str] = ("",)) -> dict[str, int]:
        """Number of jobs that lack a figure on one of the GPU types, so that their speed is
        1.0 there, by model; the most frequent first. "" counts the jobs that name no model.

        Raises:
            InputError: the profile lists no such GPU type.
        """
        types = sorted({self.gpu_type(name) for name in gpu_types})
        counts = Counter(_label(job) for job in jobs if not all(self._compares(job, name) for name in types))
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def _compares(self, job: Job, gpu_type: str) -> bool:
        pair = self._tables(job, gpu_type)
        return pair is not None and pair[1].at(job.request.gpus / GPU, 1, pair[2]) > 0.0

    def _by_type(self, workload: Workload | None) -> Mapping[str, SpeedTable]:
        if workload is None:
            return {}
        key = ModelKey.of(workload)
        return self.models.get(key) or self.models.get(ModelKey(key.model)) or {}

    def _tables(self, job: Job, gpu_type: str) -> tuple[SpeedTable, SpeedTable, tuple[int, ...]] | None:
        """The tables of this GPU type and of the reference, and the sizes that both list."""
        by_type = self._by_type(job.workload)
        table = _table(by_type, self.gpu_type(gpu_type))
        reference = _table(by_type, self.reference)
        if table is None or reference is None:
            return None
        # A speed of 8 GPUs of one type says nothing beside a speed of 4 of another.
        sizes = tuple(size for size in table.sizes if size in reference.speeds)
        return (table, reference, sizes) if sizes else None


def fastest_type(models: Mapping[ModelKey, Mapping[str, SpeedTable]]) -> str:
    """The GPU type that is fastest for most (model, size), each on its fewest nodes.

    Ties go to the first name; "" when no types are told apart.

    >>> fastest_type({ModelKey("A"): {"t4": SpeedTable({1: {1: 2.0}}), "a100": SpeedTable({1: {1: 9.0}})}})
    'a100'
    """
    wins: Counter[str] = Counter()
    for tables in models.values():
        named = {name: table for name, table in sorted(tables.items()) if name}
        wins.update(dict.fromkeys(named, 0))
        for size in sorted({size for table in named.values() for size in table.sizes}):
            speeds = {name: table.at(size, 1) for name, table in named.items() if size in table.speeds}
            wins[max(speeds, key=lambda name: speeds[name])] += 1
    return min(wins, key=lambda name: (-wins[name], name), default="")


def _table(by_type: Mapping[str, SpeedTable], gpu_type: str) -> SpeedTable | None:
    return by_type.get(gpu_type) or by_type.get("")


def _label(job: Job) -> str:
    return str(ModelKey.of(job.workload)) if job.workload and job.workload.model else ""
