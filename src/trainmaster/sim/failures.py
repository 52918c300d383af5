"""Node failures from an event file: CSV with the columns time_s, node, event.

`node` is a node's name or its index; `event` is down (its jobs are lost), drain (it takes no new
jobs) or up; every node is up at first::

    time_s,node,event
    3600,node-3,down
    7200,node-3,up
"""

from __future__ import annotations

from pathlib import Path

from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.event import NodeDown, NodeDrained, NodeUp
from trainmaster.model.units import to_seconds
from trainmaster.traces.schema import LIMIT_S, delimiter_hint, parse_time
from trainmaster.traces.source import Source

COLUMNS = ("time_s", "node", "event")

NodeEvent = NodeDown | NodeDrained | NodeUp

KINDS: dict[str, type[NodeEvent]] = {"down": NodeDown, "drain": NodeDrained, "up": NodeUp}

TURNS: dict[type[NodeEvent], tuple[str, tuple[str, ...], str]] = {
    NodeDown: ("goes down", ("up", "drained"), "down"),
    NodeDrained: ("is drained", ("up",), "drained"),
    NodeUp: ("comes up", ("down", "drained"), "up"),
}
"""What happens, in which states it can, and the state that it leads to."""


def read_failures(path: str | Path, cluster: Cluster) -> list[tuple[int, NodeEvent]]:
    """(instant in ns, event) in the order of the file, which need not be that of time.

    Raises:
        InputError: names file, row and column.
    """
    table = Source(Path(path)).table()
    first, names = next(table, (1, []))
    names = [name.strip() for name in names]
    for column in COLUMNS:
        if names.count(column) != 1:
            what = "the column is there twice" if column in names else "missing column"
            mend = delimiter_hint(",".join(names), COLUMNS) or ",".join(COLUMNS)
            raise InputError(what, file=path, row=first, column=column, mend=mend)
    places = [names.index(column) for column in COLUMNS]
    rows: list[tuple[int, int, NodeEvent]] = []
    for number, row in table:
        if len(row) != len(names):
            raise InputError(f"{len(row)} fields, the header has {len(names)}", file=path, row=number)
        at, name, kind = (row[place].strip() for place in places)
        rows.append((number, *_event(at, name, kind, number, path, cluster)))
    _check_turns(rows, path, cluster)
    return [(at, event) for _, at, event in rows]


def _event(
    at: str, name: str, kind: str, number: int, path: str | Path, cluster: Cluster
) -> tuple[int, NodeEvent]:
    try:
        instant = parse_time(at)
    except (ValueError, OverflowError):
        instant = -1
    if instant < 0:
        message = f"{at!r} is not a time in seconds, 0 to {LIMIT_S:g}"
        raise InputError(message, file=path, row=number, column="time_s")
    node = cluster.names.get(name)
    if node is None and name.isdecimal() and len(name) < 10 and int(name) < len(cluster.nodes):
        node = int(name)
    if node is None:
        hint = nearest(name, list(cluster.names)[:1000])
        raise InputError(f"unknown node {name!r}", file=path, row=number, column="node", mend=hint)
    made = KINDS.get(kind)
    if made is None:
        mend = "down, drain or up"
        raise InputError(f"unknown event {kind!r}", file=path, row=number, column="event", mend=mend)
    return instant, made(node)


def _check_turns(rows: list[tuple[int, int, NodeEvent]], path: str | Path, cluster: Cluster) -> None:
    """Refuse what contradicts the state that a node is in; a drained one may fail."""
    since: dict[int, tuple[str, int]] = {}
    for number, at, event in sorted(rows, key=lambda row: (row[1], row[2].rank, row[0])):
        state, row = since.get(event.node, ("up", 0))
        what, possible, becomes = TURNS[type(event)]
        if state not in possible:
            before = f"but is {state} since row {row}" if row else f"but is not {' or '.join(possible)}"
            message = f"{cluster.nodes[event.node].name} {what} at {to_seconds(at):g} s, {before}"
            mend = "let it come up between" if becomes != "up" else "let it go down before"
            raise InputError(message, file=path, row=number, column="event", mend=mend)
        since[event.node] = (becomes, number)
