"""Node failures from an event file: CSV with the columns time_s, node, event.

`node` is a node's name or its index; `event` is down or up::

    time_s,node,event
    3600,node-3,down
    7200,node-3,up
"""

from __future__ import annotations

import csv
from pathlib import Path

from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError, nearest
from trainmaster.model.event import NodeDown, NodeUp
from trainmaster.model.units import to_ns

COLUMNS = ("time_s", "node", "event")


def read_failures(path: str | Path, cluster: Cluster) -> list[tuple[int, NodeDown | NodeUp]]:
    """(instant in ns, event) in the order of the file.

    Raises:
        InputError: names file, row and column.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    "missing column", file=path, row=1, column=missing[0], mend=",".join(COLUMNS)
                )
            return [_event(row, reader.line_num, path, cluster) for row in reader]
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a CSV text file: {error}", file=path) from None


def _event(
    row: dict[str, str | None], number: int, path: str | Path, cluster: Cluster
) -> tuple[int, NodeDown | NodeUp]:
    at, name, kind = (str(row[column] or "").strip() for column in COLUMNS)
    try:
        seconds = float(at)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e12:
        raise InputError(f"{at!r} is not a time in seconds >= 0", file=path, row=number, column="time_s")
    node = cluster.names.get(name)
    if node is None and name.isdecimal() and len(name) < 10 and int(name) < len(cluster.nodes):
        node = int(name)
    if node is None:
        hint = nearest(name, list(cluster.names)[:1000])
        raise InputError(f"unknown node {name!r}", file=path, row=number, column="node", mend=hint)
    if kind not in ("down", "up"):
        raise InputError(f"unknown event {kind!r}", file=path, row=number, column="event", mend="down or up")
    return to_ns(seconds), NodeDown(node) if kind == "down" else NodeUp(node)
