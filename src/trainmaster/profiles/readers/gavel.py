"""Gavel throughputs: iterations per second by GPU type, job type, and job type beside it.

``{"v100": {"('ResNet-50 (batch size 32)', 4)": {"null": 13.8, "('A3C', 1)": [9.1, 2.2]}}}``:
a job type is a model with its batch size and the number of GPUs (the scale factor); an older
layout has the bare model, on one GPU. "null" is the speed alone. The speeds of pairs that
share their GPUs are left aside, and so is a job type without "null".

Gavel measures the two ends of placement (OSDI '20, section 3.1): all workers on as few
servers as possible, here one node, and each worker on a server of its own
(``v100_unconsolidated``), here as many nodes as GPUs. 0.0 says out of memory.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from trainmaster.profiles.document import Item, Source
from trainmaster.profiles.profile import ITERATIONS_PER_SECOND, ModelKey, Profile
from trainmaster.profiles.readers.base import Reader, first_of
from trainmaster.profiles.table import SpeedTable

_SCALED: Final = re.compile(r"\('(.*)', (\d{1,9})\)")
_APART: Final = "_unconsolidated"
_ALONE: Final = "null"

_REFERENCE: Final = "v100"
"""Gavel turns run times into iterations by the speed on this type (`generate_job` in its utils.py)."""


class GavelReader(Reader):
    """GPU types at the top, then job types, then what runs beside."""

    name: ClassVar[str] = "gavel"
    wanted: ClassVar[str] = "a throughputs .json of Gavel"
    citation: ClassVar[str] = "Narayanan et al., OSDI '20; github.com/stanford-futuredata/gavel"

    def detect(self, source: Source) -> bool:
        _, beside = first_of(first_of(source.document.value)[1])
        return isinstance(beside, dict) and (_ALONE in beside or isinstance(first_of(beside)[1], list))

    def read(self, source: Source) -> Profile:
        document = source.document
        speeds: dict[ModelKey, dict[str, dict[int, dict[int, float]]]] = {}
        for name, job_types in document.items():
            gpu_type = name.text().removesuffix(_APART)
            apart = gpu_type != name.text()
            if not gpu_type:
                raise name.fault("names no GPU type")
            for job_type, beside in job_types.items():
                key, gpus = _job_type(job_type)
                alone = beside.mapping().get(_ALONE)
                # One GPU can't be apart from itself: Gavel repeats its speed there.
                if alone is None or (apart and gpus == 1):
                    continue
                by_nodes = speeds.setdefault(key, {}).setdefault(gpu_type, {}).setdefault(gpus, {})
                nodes = gpus if apart else 1
                if nodes in by_nodes:
                    raise beside.fault("the same job type stands twice", "keep one")
                by_nodes[nodes] = alone.speed()
        models = {
            key: {name: SpeedTable(table) for name, table in sorted(by_type.items())}
            for key, by_type in speeds.items()
        }
        return Profile(
            models,
            ITERATIONS_PER_SECOND,
            _REFERENCE if any(_REFERENCE in by_type for by_type in models.values()) else "",
            name="Gavel throughputs",
            source=self.citation,
            format=self.name,
            path=document.file,
        )


def _job_type(item: Item) -> tuple[ModelKey, int]:
    scaled = _SCALED.fullmatch(item.text())
    if scaled is None:
        return ModelKey.parse(item.text()), 1
    return ModelKey.parse(scaled[1]), Item(scaled[2], item.file, item.key).whole()
