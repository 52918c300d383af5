"""Readers of trace formats, one file each, in the order in which a file is recognized.

A package of its own adds one through the entry-point group `trainmaster.trace_readers`
(name = "module:ReaderClass"). Nothing is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

from trainmaster.model.errors import InputError, nearest
from trainmaster.traces.readers.base import Reader

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["BUILT_IN", "ENTRY_POINTS", "Reader", "find_reader", "format_names", "readers"]

ENTRY_POINTS: Final = "trainmaster.trace_readers"
"""Entry-point group of readers in other packages."""

BUILT_IN: Final[dict[str, str]] = {
    "csv": "trainmaster.traces.readers.normalized:NormalizedReader",
    "philly": "trainmaster.traces.readers.philly:PhillyReader",
    "helios": "trainmaster.traces.readers.helios:HeliosReader",
    "acme": "trainmaster.traces.readers.acme:AcmeReader",
    "pai": "trainmaster.traces.readers.pai:PaiReader",
    "openb": "trainmaster.traces.readers.openb:OpenbReader",
    "itp": "trainmaster.traces.readers.itp:ItpReader",
    "gavel": "trainmaster.traces.readers.gavel:GavelReader",
    "muri": "trainmaster.traces.readers.tiresias:MuriReader",
    "chronus": "trainmaster.traces.readers.tiresias:ChronusReader",
    "tiresias": "trainmaster.traces.readers.tiresias:TiresiasReader",
    "slurm": "trainmaster.traces.readers.slurm:SlurmReader",
    "swf": "trainmaster.traces.readers.swf:SwfReader",
}
"""Name of a format: where its reader is."""


def format_names() -> tuple[str, ...]:
    """Names for ``--format``, those of other packages included."""
    return (*BUILT_IN, *_others())


def _others() -> list[str]:
    return sorted({point.name for point in _entry_points()} - set(BUILT_IN))


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # here, because it takes 15 ms that few runs need

    return entry_points(group=ENTRY_POINTS)


def find_reader(name: str) -> Reader:
    """The reader of the format `name`; raises `InputError` that suggests the nearest name."""
    target = BUILT_IN.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        reader = getattr(import_module(module), attribute)()
    else:
        points = [point for point in _entry_points() if point.name == name]
        if not points:
            raise InputError(f"unknown trace format {name!r}", mend=nearest(name, format_names()))
        reader = points[0].load()()
    if not isinstance(reader, Reader):
        raise InputError(f"trace format {name!r} is not a trainmaster.traces.Reader")
    return reader


def readers() -> Iterator[Reader]:
    """Every reader, in the order of recognition."""
    for name in BUILT_IN:
        yield find_reader(name)
    for name in _others():
        yield find_reader(name)
