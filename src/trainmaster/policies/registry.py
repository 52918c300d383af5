"""Policies by name, and how a name on the command line becomes a policy.

A specification is a name, optionally with knobs: `fifo`, `fifo(backfill=easy)`,
`my_policy.py`, `my_policy.py:Smallest(size=3)`. Packages add policies through the
entry-point group `trainmaster.policies`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import entry_points

from trainmaster.model.errors import InputError, nearest
from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Value, settings

BUILT_IN = {
    "fifo": "fifo:Fifo",
    "sjf": "sjf:Sjf",
    "srtf": "srtf:Srtf",
    "srsf": "srsf:Srsf",
    "las": "las:Las",
    "gittins": "gittins:Gittins",
    "priority": "priority:Priority",
    "drf": "drf:Drf",
    "timeslice": "timeslice:Timeslice",
}
"""Name → module:class within `trainmaster.policies`."""

GROUP = "trainmaster.policies"

Specification = str | type[Policy]
"""A policy by name (with knobs), by file, or as the class itself."""

_SPECIFICATION = re.compile(r"\s*(?P<name>[^()]+?)\s*(?:\((?P<knobs>.*)\))?\s*")


def names() -> list[str]:
    """Names of all policies, built in first."""
    plugins = sorted({point.name for point in entry_points(group=GROUP)} - BUILT_IN.keys())
    return [*BUILT_IN, *plugins]


def title_of(specification: Specification) -> str:
    """The name that `--set` uses: without the knobs.

    >>> title_of("fifo(backfill=easy)")
    'fifo'
    """
    return specification.partition("(")[0].strip() if isinstance(specification, str) else specification.name


def policy_class(name: str) -> type[Policy]:
    """The class behind a name, a plugin's name, or `file.py[:Class]`.

    Raises:
        InputError: there is no such policy; names the nearest.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Policy] = getattr(importlib.import_module(f"trainmaster.policies.{module}"), attribute)
        return found
    path, _, attribute = name.partition(":")
    if path.endswith(".py"):
        return _from_file(path, attribute)
    for point in entry_points(group=GROUP):
        if point.name == name:
            loaded = point.load()
            if not (inspect.isclass(loaded) and issubclass(loaded, Policy)):
                raise InputError(f"plugin {point.value} is not a trainmaster.Policy class")
            return loaded
    raise InputError(f"unknown policy {name!r}", mend=nearest(name, names()))


def split(specifications: str) -> list[str]:
    """Split a comma-separated list, leaving commas inside parentheses alone.

    >>> split("fifo, las(queues=3,limit=60)")
    ['fifo', 'las(queues=3,limit=60)']
    """
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", specifications)]
    if not all(parts):
        raise InputError(f"an empty policy name in {specifications!r}", mend="separate names by one comma")
    return parts


def create(
    specification: Specification,
    *,
    overrides: Mapping[str, Mapping[str, object]] | None = None,
    placement: str = "pack",
    relax_s: float | None = None,
    defaults: Mapping[str, Value] | None = None,
) -> Policy:
    """A policy from its specification.

    Args:
        overrides: knobs by policy name (`--set`); knobs in the specification win.
        placement: pool, pack or spread.
        relax_s: waiting time after which any nodes will do, seconds.
        defaults: other default values, for policies that have such a knob.

    Raises:
        InputError: unknown policy or knob, or a bad value.

    >>> create("las(queues=3)").settings["queues"]
    3
    """
    if not isinstance(specification, str):
        return _made(
            specification, specification.name, specification.name, overrides, placement, relax_s, defaults
        )
    match = _SPECIFICATION.fullmatch(specification)
    if match is None:
        raise InputError(f"can't read policy {specification!r}", mend="write name or name(knob=value, ...)")
    name = match["name"]
    knobs: dict[str, object] = {}
    for setting in filter(None, (part.strip() for part in (match["knobs"] or "").split(","))):
        knob, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"can't read {setting!r} in {specification!r}", mend="write knob=value")
        knobs[knob.strip()] = value.strip()
    title = specification.strip() if match["knobs"] else name
    return _made(policy_class(name), name, title, overrides, placement, relax_s, defaults, knobs)


def _made(
    found: type[Policy],
    name: str,
    title: str,
    overrides: Mapping[str, Mapping[str, object]] | None,
    placement: str,
    relax_s: float | None,
    defaults: Mapping[str, Value] | None,
    inline: Mapping[str, object] | None = None,
) -> Policy:
    """A policy of a class, its knobs checked first."""
    knobs = {**(overrides or {}).get(name, {}), **(inline or {})}
    settings(found.all_knobs(), knobs, name)
    known = {knob.name for knob in found.all_knobs()}
    suitable = {knob: value for knob, value in (defaults or {}).items() if knob in known}
    return found(placement=placement, relax_s=relax_s, title=title, defaults=suitable, **knobs)


def _from_file(path: str, attribute: str) -> type[Policy]:
    """The only policy class of a file, or the named one."""
    specification = importlib.util.spec_from_file_location("trainmaster_user_policy", path)
    if specification is None or specification.loader is None:
        raise InputError("not a Python file", file=path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        specification.loader.exec_module(module)
    except FileNotFoundError:
        raise InputError("no such file", file=path, mend="give a policy's name or its Python file") from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except SyntaxError as error:
        raise InputError(f"not valid Python: {error.msg}", file=path, row=error.lineno) from None
    except Exception as error:  # the user's code: anything can be raised
        rows = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise InputError(what, file=path, row=rows[-1] if rows else None) from error
    classes = {
        name: member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, Policy) and member.__module__ == module.__name__
    }
    if attribute:
        if attribute not in classes:
            raise InputError(f"no policy class {attribute!r}", file=path, mend=nearest(attribute, classes))
        return classes[attribute]
    if len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise InputError(f"expected one policy class, found {found}", file=path, mend="write FILE.py:Class")
    return next(iter(classes.values()))
