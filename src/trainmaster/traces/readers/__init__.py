"""Readers of trace formats, one file each, in the order in which a file is recognized.

A Python file with a reader is used by its name, `my_reader.py` or `my_reader.py:MyReader`.
A package of its own adds one through the entry-point group `trainmaster.trace_readers`
(name = "module:ReaderClass"). Nothing is imported before it is needed.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
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
    """The reader of a format, or of a Python file: `file.py[:Class]`.

    Raises:
        InputError: there is no such format (names the nearest), or the file holds no usable reader.
    """
    path, _, attribute = name.partition(":")
    if path.endswith(".py"):
        return _from_file(path, attribute)
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
    module = _run(path)
    classes = {
        name: member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, Reader) and member.__module__ == module.__name__
    }
    if attribute and attribute not in classes:
        raise InputError(f"no reader class {attribute!r}", file=path, mend=nearest(attribute, classes))
    if not attribute and len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise InputError(f"expected one reader class, found {found}", file=path, mend="write FILE.py:Class")
    chosen = classes[attribute or next(iter(classes))]
    if inspect.isabstract(chosen):
        missing = ", ".join(sorted(chosen.__abstractmethods__))
        raise InputError(f"{chosen.__name__} lacks {missing}", file=path, mend="define it in the class")
    if not getattr(chosen, "name", ""):
        raise InputError(f"{chosen.__name__} has no name", file=path, mend='write name = "..." in the class')
    return chosen()


def _run(path: str) -> ModuleType:
    """Run the user's file as a module."""
    specification = importlib.util.spec_from_file_location("trainmaster_user_reader", path)
    if specification is None or specification.loader is None:
        raise InputError("not a Python file", file=path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        specification.loader.exec_module(module)
    except FileNotFoundError:
        raise InputError("no such file", file=path, mend="give a format's name or its Python file") from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except SyntaxError as error:
        raise InputError(f"not valid Python: {error.msg}", file=path, row=error.lineno) from None
    except Exception as error:  # the user's code: anything can be raised
        file = specification.origin  # absolute, as in the traceback
        rows = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise InputError(what, file=path, row=rows[-1] if rows else None) from error
    return module
