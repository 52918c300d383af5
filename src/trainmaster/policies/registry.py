"""Policies by name, and how a name on the command line becomes a policy.

A specification is a name, optionally with knobs: `fifo`, `fifo(backfill=easy)`,
`my_policy.py`, `my_policy.py:Smallest(size=3)`. Packages add policies through the
entry-point group `trainmaster.policies`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from itertools import pairwise

from trainmaster.model.errors import FAILURES, InputError, PolicyError, TrainmasterError, nearest
from trainmaster.model.plugin import class_from_file, failure, split_file
from trainmaster.model.text import is_clean
from trainmaster.policies.base import Policy
from trainmaster.policies.checks import refuse_faults
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
    "standard": "standard:Standard",
}
"""Name → module:class within `trainmaster.policies`."""

GROUP = "trainmaster.policies"

Specification = str | type[Policy]
"""A policy by name (with knobs), by file, or as the class itself."""

_SPECIFICATION = re.compile(r"\s*(?P<name>.+?\.py(?::\w*)?|[^()]+?)\s*(?:\((?P<knobs>.*)\))?\s*")
"""A file's path may hold parentheses; knobs are those behind its ending."""


def names() -> list[str]:
    """Names of all policies, built in first."""
    plugins = sorted({point.name for point in entry_points(group=GROUP)} - BUILT_IN.keys())
    return [*BUILT_IN, *plugins]


def title_of(specification: Specification) -> str:
    """The name that `--set` uses: without the knobs.

    >>> title_of("fifo(backfill=easy)")
    'fifo'
    >>> title_of("runs (2)/mine.py(size=3)")
    'runs (2)/mine.py'
    """
    if not isinstance(specification, str):
        return specification.name
    match = _SPECIFICATION.fullmatch(specification)
    return match["name"] if match else specification.partition("(")[0].strip()


def policy_class(name: str) -> type[Policy]:
    """The class behind a name, a plugin's name, or `file.py[:Class]`.

    Raises:
        InputError: there is no such policy; names the nearest.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Policy] = getattr(importlib.import_module(f"trainmaster.policies.{module}"), attribute)
        return found
    file = split_file(name)
    if file is not None:
        return class_from_file(*file, Policy, "policy", "give a policy's name or its Python file")
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
    for first, second in pairwise(parts):
        name = title_of(first)
        if name not in BUILT_IN and not split_file(name) and ".py" in second and name not in names():
            mend = f"{nearest(name, names())}; or rename the file: a comma separates policies"
            raise InputError(f"unknown policy {first!r} before {second!r}", mend=mend)
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
        PolicyError: the policy can't be made, or declares what the engine can't take.

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
        knob = knob.strip()
        if not equals:
            raise InputError(f"can't read {setting!r} in {specification!r}", mend="write knob=value")
        if knob in knobs:
            raise InputError(f"knob {knob!r} stands twice in {specification!r}", mend="give it once")
        knobs[knob] = value.strip()
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
    if not is_clean(title):
        raise InputError(f"policy {title!r} has a control character in its name", mend="rename it")
    knobs = {**(overrides or {}).get(name, {}), **(inline or {})}
    for knob, value in knobs.items():
        if not is_clean(f"{knob}{value}"):
            raise InputError(f"knob {knob}={value} of policy {title} has a control character in it")
    try:
        known = found.all_knobs()
        settings(known, knobs, name)
        own = {knob.name for knob in known}
        suitable = {knob: value for knob, value in (defaults or {}).items() if knob in own}
        policy = found(placement=placement, relax_s=relax_s, title=title, defaults=suitable, **knobs)
        refuse_faults(policy)
    except TrainmasterError:
        raise
    except FAILURES as error:  # a policy may be anybody's code
        raise PolicyError(f"policy {title}: {failure(error)}") from error
    return policy
