"""A class from a Python file that the user names: a policy, a trace reader."""

from __future__ import annotations

import inspect
import sys
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, TypeVar

from trainmaster.model.errors import FAILURES, InputError, nearest

Base = TypeVar("Base")


def split_file(name: str) -> tuple[str, str] | None:
    """Path and class (may be empty) of `file.py[:Class]`; None when it names no Python file.

    >>> split_file("a:b/mine.py:Smallest"), split_file("mine.py"), split_file("fifo")
    (('a:b/mine.py', 'Smallest'), ('mine.py', ''), None)
    """
    if name.endswith(".py"):
        return name, ""
    head, found, attribute = name.rpartition(".py:")
    return (f"{head}.py", attribute) if found else None


def class_from_file(path: str, attribute: str, base: type[Base], kind: str, mend: str) -> type[Base]:
    """The only class derived from `base` that a file defines, or the named one.

    Args:
        path: the Python file; it is run anew at each call.
        attribute: name of the class; "" for the only one.
        base: what it must be derived from.
        kind: what such a class is called in messages.
        mend: what to do when there is no such file.

    Raises:
        InputError: no such file, it doesn't run, or there isn't exactly one class; names file and row.
    """
    module = _run(path, mend)
    classes: dict[str, type[Any]] = {
        name: member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, base) and member.__module__ == module.__name__
    }
    if attribute and attribute not in classes:
        raise InputError(f"no {kind} class {attribute!r}", file=path, mend=nearest(attribute, classes))
    if not attribute and len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise InputError(f"expected one {kind} class, found {found}", file=path, mend="write FILE.py:Class")
    return classes[attribute or next(iter(classes))]


def _run(path: str, mend: str) -> ModuleType:
    # The path is part of the name: two files in one call must not take each other's place.
    name = f"trainmaster_user:{path.replace('.', '_')}"
    specification = spec_from_file_location(name, path)
    if specification is None or not isinstance(specification.loader, SourceFileLoader):
        raise InputError("not a Python file", file=path)
    loader, file = specification.loader, str(specification.origin)
    module = module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        source = loader.get_data(file)
    except FileNotFoundError:
        raise InputError("no such file", file=path, mend=mend) from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    try:
        # Compiled here: a cached compilation may be older than the file, by less than a second.
        exec(loader.source_to_code(source, file), vars(module))
    except SyntaxError as error:
        here = error.filename == file
        what = f"not valid Python: {error.msg}" if here else _said(error)
        raise InputError(what, file=path, row=error.lineno if here else _row(error, file)) from None
    except FAILURES as error:  # the user's code: anything can be raised
        raise InputError(_said(error), file=path, row=_row(error, file)) from error
    return module


def _row(error: BaseException, file: str) -> int | None:
    """The last line of the file that the error came through."""
    rows = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return rows[-1] if rows else None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def failure(error: BaseException) -> str:
    """An error in somebody's code and the line that raised it, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{_said(error)}{place}"
