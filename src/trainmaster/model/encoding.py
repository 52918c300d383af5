"""Jobs, requests, events and clusters as plain data that JSON can hold, and back.

Fields that have their defaults are left out, so that what is added to a job later on costs
nothing in older files, and is read back without a change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from trainmaster.model import event as events
from trainmaster.model.allocation import Allocation, Share, bits
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.event import Event
from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.model.queues import Queue, QueueTree

T = TypeVar("T")

NESTED: dict[str, type] = {"request": Request, "workload": Workload, "deadlines": Deadline}
"""Fields that hold one of these, or a tuple of them."""

EVENTS: dict[str, type[Event]] = {
    name.lower(): found
    for name, found in vars(events).items()
    if isinstance(found, type) and issubclass(found, Event) and found is not Event
}
"""Events by their names in files."""


def plain(value: Any) -> Any:
    """A frozen dataclass as a dict of the fields that differ from their defaults; tuples as lists.

    >>> plain(Request(gpus=2000, gpu_types=("A100",)))
    {'gpus': 2000, 'gpu_types': ['A100']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: plain(getattr(value, each.name))
            for each in fields(value)
            if each.init and (each.default is MISSING or getattr(value, each.name) != each.default)
        }
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def build(kind: type[T], entry: Mapping[str, Any]) -> T:
    """What `plain` was given.

    Raises:
        InputError: an unknown field, one that is missing, or a value of the wrong kind.

    >>> build(Request, {"gpus": 2000, "gpu_types": ["A100"]})
    Request(gpus=2000, gpu_types=('A100',), nodes=None, min_gpus=None, max_gpus=None, preemptible=True, \
pods=None, labels=(), within='', near='')
    """
    if not isinstance(entry, Mapping):
        raise InputError(f"{entry!r:.60} is no {kind.__name__.lower()}", mend="give an object")
    known = _names(kind)  # type: ignore[arg-type]
    for name in entry:
        if name not in known:
            what = f"a {kind.__name__.lower()} has no field {name!r}"
            raise InputError(what, column=name, mend=nearest(name, known))
    try:
        return kind(
            **{
                name: _value(NESTED.get(name), value) if isinstance(value, dict | list) else value
                for name, value in entry.items()
            }
        )
    except TypeError as error:
        raise InputError(f"can't read a {kind.__name__.lower()}: {error}") from None


@cache
def _names(kind: type) -> tuple[str, ...]:
    """What its fields are called."""
    return tuple(each.name for each in fields(kind) if each.init)


def _value(kind: type | None, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(kind, each) for each in value)
    return value if kind is None or value is None else build(kind, value)


# -- events -----------------------------------------------------------------------------------


def plain_event(event: Event) -> dict[str, Any]:
    """An event by its name and fields; a submission with the whole job.

    >>> plain_event(events.Lost("a", 5))
    {'event': 'lost', 'job_id': 'a', 'kept': 5}
    """
    return {"event": type(event).__name__.lower(), **plain(event)}


def build_event(entry: Mapping[str, Any]) -> Event:
    """What `plain_event` was given.

    Raises:
        InputError: an unknown event or field.
    """
    values = dict(entry)
    name = values.pop("event", None)
    kind = EVENTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"unknown event {name!r:.60}", column="event", mend=nearest(str(name), EVENTS))
    if "job" in values:
        values["job"] = build(Job, values["job"])
    try:
        return kind(**values)
    except TypeError as error:
        raise InputError(f"can't read event {name}: {error}", column="event") from None


# -- allocations ------------------------------------------------------------------------------


def plain_allocation(allocation: Allocation, cluster: Cluster) -> list[list[Any]]:
    """[node, devices, milli-GPUs] for each node."""
    return [[cluster.nodes[node].name, bits(devices), milli] for node, devices, milli in allocation.shares]


def build_allocation(entry: Any, cluster: Cluster) -> Allocation:
    """What `plain_allocation` was given.

    Raises:
        InputError: an unknown node, or no list of [node, devices, milli-GPUs].
    """
    shares = []
    try:
        for name, devices, milli in entry:
            if name not in cluster.names:
                raise InputError(f"there is no node {name!r}", column="on", mend=nearest(name, cluster.names))
            mask = sum(1 << device for device in set(devices))
            shares.append(Share(cluster.names[name], mask, int(milli)))
    except (TypeError, ValueError):
        mend = 'write [["node-0", [0, 1], 2000]]'
        raise InputError(f"{entry!r:.60} names no GPUs", column="on", mend=mend) from None
    return Allocation.of(shares)


# -- clusters ---------------------------------------------------------------------------------


def plain_cluster(cluster: Cluster) -> dict[str, Any]:
    """Nodes, levels and queues."""
    entry: dict[str, Any] = {"nodes": [plain(node) for node in cluster.nodes]}
    if cluster.pooled:
        entry["pooled"] = True
    if cluster.levels:
        entry["levels"] = list(cluster.levels)
    if cluster.queues is not None:
        entry["queues"] = [plain(queue) for queue in cluster.queues.queues]
    return entry


def build_cluster(entry: Mapping[str, Any]) -> Cluster:
    """What `plain_cluster` was given.

    Raises:
        InputError: it describes no cluster.
    """
    queues = entry.get("queues")
    return Cluster(
        tuple(build(Node, node) for node in entry.get("nodes", ())),
        pooled=bool(entry.get("pooled", False)),
        levels=tuple(entry.get("levels", ())),
        queues=None if queues is None else QueueTree(tuple(build(Queue, queue) for queue in queues)),
    )
