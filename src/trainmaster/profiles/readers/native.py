"""Trainmaster's own format, version 1, as JSON or YAML. docs/profiles.md describes it.

::

    trainmaster_profile: 1
    unit: iterations_per_second        # or relative
    reference: v100                    # optional
    models:
      - model: ResNet-50
        batch_size: 32                 # optional
        speeds:
          v100: {1: {1: 7.79}, 4: {1: 13.76, 4: 12.85}}     # GPUs: {nodes: speed}
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from trainmaster.model.job import Workload
from trainmaster.profiles.document import Item, Source
from trainmaster.profiles.profile import ANY, UNITS, ModelKey, Profile
from trainmaster.profiles.readers.base import Reader
from trainmaster.profiles.table import SpeedTable

MARK: Final = "trainmaster_profile"
VERSION: Final = 1
_KEYS: Final = (MARK, "name", "source", "unit", "reference", "models")
_MODEL_KEYS: Final = ("model", "batch_size", "speeds")


class NativeReader(Reader):
    """Recognized by the key ``trainmaster_profile``, whose value is the version."""

    name: ClassVar[str] = "trainmaster"
    wanted: ClassVar[str] = f"a file with {MARK}: {VERSION}"
    citation: ClassVar[str] = "docs/profiles.md"

    def detect(self, source: Source) -> bool:
        value = source.document.value
        return isinstance(value, dict) and MARK in value

    def read(self, source: Source) -> Profile:
        document = source.document
        # First of all: a later version may have other keys.
        version = document.mapping()[MARK]
        if version.value != VERSION or isinstance(version.value, bool):
            raise version.fault(f"this Trainmaster reads version {VERSION} only")
        fields = document.fields(_KEYS)
        models: dict[ModelKey, dict[str, SpeedTable]] = {}
        for item in _field(document, fields, "models").entries():
            key, tables = _model(item)
            if key in models:
                raise item.fault(f"{key} stands twice", "keep one")
            models[key] = tables
        unit = _field(document, fields, "unit")
        if unit.text() not in UNITS:
            raise unit.fault(f"{unit.value!r} is no unit of speed", f"give {' or '.join(UNITS)}")
        about = {name: fields[name].text() for name in ("reference", "name", "source") if name in fields}
        return Profile(models, unit.text(), format=self.name, path=document.file, **about)


def document_of(profile: Profile) -> dict[str, Any]:
    """The profile as the document that `NativeReader` reads."""
    about = {"name": profile.name, "source": profile.source, "reference": profile.reference}
    return {
        MARK: VERSION,
        "unit": profile.unit,
        **{name: value for name, value in about.items() if value},
        "models": [
            {
                "model": key.model,
                **({} if key.batch_size is None else {"batch_size": key.batch_size}),
                "speeds": {
                    name or ANY: {gpus: dict(by_nodes) for gpus, by_nodes in table.speeds.items()}
                    for name, table in sorted(tables.items())
                },
            }
            for key, tables in sorted(
                profile.models.items(), key=lambda entry: (entry[0].model, entry[0].batch_size or 0)
            )
        ],
    }


def _model(item: Item) -> tuple[ModelKey, dict[str, SpeedTable]]:
    fields = item.fields(_MODEL_KEYS)
    tables = {}
    for gpu_type, speeds in _field(item, fields, "speeds").items():
        tables["" if gpu_type.value == ANY else gpu_type.text()] = SpeedTable(speeds.speeds())
    model = _field(item, fields, "model").text()
    batch = fields["batch_size"].whole() if "batch_size" in fields else None
    return ModelKey.of(Workload(model, batch)), tables


def _field(item: Item, fields: dict[str, Item], name: str) -> Item:
    if name not in fields:
        raise item.fault(f"key {name!r} is missing", "docs/profiles.md shows an example")
    return fields[name]
