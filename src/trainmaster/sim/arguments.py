"""What `simulate` is given from Python: each mistake in one line that says what to write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError
from trainmaster.model.numbers import whole
from trainmaster.policies.base import Policy
from trainmaster.policies.registry import Specification, split
from trainmaster.profiles import Profile
from trainmaster.sim.options import Options
from trainmaster.traces.trace import Trace

_CLUSTER = "tm.Cluster.homogeneous(nodes, gpus_per_node), or tm.read_cluster(file)"


def check_kinds(trace: object, profile: object, failures: object, flags: Mapping[str, object]) -> None:
    """Refuse what is of another kind than it must be.

    Raises:
        InputError: says which, and how to make it.
    """
    if not isinstance(trace, Trace):
        raise InputError(f"trace is {trace!r:.60}, not a Trace", mend="load it: tm.load_trace(path)")
    if profile is not None and not isinstance(profile, Profile):
        raise InputError(f"profile is {profile!r:.60}, not a Profile", mend="load it: tm.load_profile(path)")
    if failures is not None and not isinstance(failures, str | os.PathLike):
        raise InputError(f"failures is {failures!r:.60}, not a path", mend="write them to a CSV file")
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} is {value!r:.60}", mend="True or False")


def read_clusters(given: Any, options: Options) -> tuple[list[Cluster], Options]:
    """The clusters, and the options with the weights of a cluster file that was read.

    Args:
        given: a cluster, several, or what `read_cluster` returns: (cluster, weights).

    Raises:
        InputError: something is no cluster, or weights are given twice.
    """
    if isinstance(given, Cluster):
        return [given], options
    if _is_file(given):
        cluster, weights = given
        if weights and options.weights:
            raise InputError(
                "weights of tenants are in the options and in the cluster file",
                mend="give tm.read_cluster(file)[0], or no weights",
            )
        return [cluster], replace(options, weights=weights) if weights else options
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for each in found:
        if _is_file(each):
            raise InputError(
                "a cluster file also holds weights, which are one for all runs",
                mend="for several clusters give tm.read_cluster(file)[0] of each",
            )
        if not isinstance(each, Cluster):
            raise InputError(f"cluster is {each!r:.60}, not a Cluster", mend=_CLUSTER)
    return found, options


def _is_file(given: object) -> bool:
    """Whether it is what `read_cluster` returns."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], Cluster)
        and isinstance(given[1], dict)
    )


def read_seeds(given: Any) -> list[int]:
    """One seed or several.

    Raises:
        InputError: one is no whole number, or negative.
    """
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return [whole(each, "seed", low=0) for each in (given if several else [given])]


def read_specifications(given: Any) -> list[Specification]:
    """Policies by name, file or class; in a text, separated by commas.

    Raises:
        InputError: something else is among them.
    """
    if isinstance(given, str):
        return list(split(given))
    several = isinstance(given, Sequence)
    found = list(given) if several else [given]
    for each in found:
        if not (isinstance(each, str) or (isinstance(each, type) and issubclass(each, Policy))):
            what = f"an object of {type(each).__name__}" if isinstance(each, Policy) else f"{each!r:.60}"
            raise InputError(f"policy is {what}", mend="give its name, its file, or the class itself")
    return found


def read_folder(given: Any) -> Path | None:
    """A folder for files, as a path.

    Raises:
        InputError: it is no path.
    """
    if given is None or isinstance(given, Path):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"events is {given!r:.60}, not a path", mend="give a folder")
    return Path(given)
