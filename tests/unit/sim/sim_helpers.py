"""Small traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trainmaster as tm
from trainmaster.model.job import Job, Request
from trainmaster.model.units import GPU, to_ns
from trainmaster.traces import Truth


def trace_of(*rows: tuple[float, float, float], **fields: Any) -> tm.Trace:
    """Jobs j0, j1, … from (submit, duration, GPUs), in seconds."""
    jobs = [
        Job(f"j{row}", row, to_ns(submit), Request(round(gpus * GPU)), **fields)
        for row, (submit, _, gpus) in enumerate(rows)
    ]
    return tm.Trace(jobs, [Truth(to_ns(duration)) for _, duration, _ in rows], name="tiny", path="tiny.csv")


def written(folder: Path, name: str, text: str) -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(text)
    return path
