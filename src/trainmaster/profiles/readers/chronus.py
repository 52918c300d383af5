"""Chronus ``model_info.json``: relative speed by model, number of GPUs, number of nodes.

``{"alexnet": {"4": {"1": 1.0, "2": 0.397, "4": 0.325}, …}, …}``; 1.0 is the gang on one
node. Five vision models on 2, 4, 6 and 8 GPUs. GPU types are not told apart.
"""

from __future__ import annotations

from typing import ClassVar

from trainmaster.profiles.document import Source
from trainmaster.profiles.profile import RELATIVE, ModelKey, Profile
from trainmaster.profiles.readers.base import Reader, first_of
from trainmaster.profiles.table import SpeedTable


class ChronusReader(Reader):
    """Models at the top, then GPUs, then nodes."""

    name: ClassVar[str] = "chronus"
    wanted: ClassVar[str] = "model_info.json of Chronus"
    citation: ClassVar[str] = "Gao et al., SoCC '21; github.com/S-Lab-System-Group/ChronusArtifact"

    def detect(self, source: Source) -> bool:
        gpus, by_nodes = first_of(first_of(source.document.value)[1])
        return isinstance(gpus, str | int) and str(gpus).isdecimal() and isinstance(by_nodes, dict)

    def read(self, source: Source) -> Profile:
        document = source.document
        models = {
            ModelKey(name.text()): {"": SpeedTable(by_gpus.speeds())} for name, by_gpus in document.items()
        }
        return Profile(
            models,
            RELATIVE,
            name="Chronus model_info",
            source=self.citation,
            format=self.name,
            path=document.file,
        )
