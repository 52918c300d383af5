"""The event log of a run: one JSON object a line, events and actions as they happened.

`{"run": 0, "t_ns": 94000000000, "event": "submitted", "job": "44039", "gpus": 1}` and
`{"run": 0, "t_ns": …, "action": "start", "job": "44039", "on": [["node-0", [0]]]}`. Instants
are integer nanoseconds of the trace's clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmaster.model.action import Action, Start, Wake
from trainmaster.model.allocation import bits
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import (
    CheckpointWritten,
    Event,
    Failed,
    Lost,
    NodeDown,
    NodeDrained,
    NodeUp,
    Submitted,
    Timer,
)
from trainmaster.model.units import to_gpus


class EventLog:
    """Writes the instants of one run; use as a context manager and as a `Watcher`."""

    def __init__(self, path: Path, run: int, cluster: Cluster) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._run = run
        self._names = [node.name for node in cluster.nodes]

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __call__(self, now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        """Write one instant. Timers and wake-ups are the engine's own affair."""
        for event in events:
            if type(event) is not Timer:
                self._write({"event": type(event).__name__.lower(), **self._event(event)}, now)
        for action in actions:
            if type(action) is not Wake:
                self._write({"action": type(action).__name__.lower(), **self._action(action)}, now)

    def _write(self, entry: dict[str, Any], now: int) -> None:
        self._file.write(json.dumps({"run": self._run, "t_ns": now, **entry}) + "\n")

    def _event(self, event: Event) -> dict[str, Any]:
        if isinstance(event, Submitted):
            job = event.job
            return {"job": job.id, "gpus": to_gpus(job.request.gpus), "tenant": job.tenant}
        if isinstance(event, NodeDown | NodeDrained | NodeUp):
            return {"node": self._names[event.node]}
        entry: dict[str, Any] = {"job": getattr(event, "job_id", None)}
        if isinstance(event, CheckpointWritten):
            entry["progress_ns"] = event.progress
        elif isinstance(event, Lost):
            entry |= {"kept_ns": event.kept, "reason": event.reason}
        elif isinstance(event, Failed):
            entry["reason"] = event.reason
        return entry

    def _action(self, action: Action) -> dict[str, Any]:
        entry: dict[str, Any] = {"job": getattr(action, "job_id", None)}
        if isinstance(action, Start):
            shares = action.allocation.shares
            entry["on"] = [[self._names[share.node], bits(share.devices)] for share in shares]
        return entry
