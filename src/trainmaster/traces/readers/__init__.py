"""Readers of trace formats, one file each, in the order in which a file is recognized.

A Python file with a reader is used by its name, `my_reader.py` or `my_reader.py:MyReader`.
A package of its own adds one through the entry-point group `trainmaster.trace_readers`
(name = "module:ReaderClass"). Nothing is imported before it is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.plugin import class_from_file, failure, split_file
from trainmaster.model.text import is_clean
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
    """The reader of a format, or of a Python file: `file.py[:Class]`.

    Raises:
        InputError: there is no such format (names the nearest), or the file holds no usable reader.
    """
    file = split_file(name)
    if file is not None:
        return _from_file(*file)
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


def _from_file(path: str, attribute: str) -> Reader:
    """The only reader of a Python file, or the named one."""
    mend = "give a format's name or its Python file"
    # mypy: an abstract class is no `type[Reader]` to it, though nothing is made of it here.
    chosen = class_from_file(path, attribute, Reader, "reader", mend)  # type: ignore[type-abstract]
    if inspect.isabstract(chosen):
        missing = ", ".join(sorted(chosen.__abstractmethods__))
        raise InputError(f"{chosen.__name__} lacks {missing}", file=path, mend="define it in the class")
    name = getattr(chosen, "name", "")
    if not name or not isinstance(name, str) or not is_clean(name):
        raise InputError(f"{chosen.__name__} has no name", file=path, mend='write name = "..." in the class')
    try:
        return chosen()
    except Exception as error:  # the user's code: anything can be raised
        raise InputError(failure(error), file=path) from error
