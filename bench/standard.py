"""The `standard` policy: how long it decides on a large, busy cluster, and what a long log costs."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

from replay import Replay, cpu, peak
from support import ROOT, Found, MeasureError, Suite, run

NODES, QUEUES, JOBS, STEPS = 1_000, 20, 6_000, 2_000


@cache
def busy(factor: int = 1) -> dict[str, Any]:
    """What bench/busy_cluster.py prints for so many times the nodes and jobs."""
    words = map(str, (NODES * factor, QUEUES, JOBS * factor, STEPS))
    done = run([sys.executable, ROOT / "bench" / "busy_cluster.py", *words])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def add(suite: Suite) -> None:
    """Rows of decisions, of a burst, of growth, and of 82,000 jobs."""
    how = f"bench/busy_cluster.py {NODES} {QUEUES} {JOBS} {STEPS}: wall time of one decision"
    for name, key, target in (
        ("p50", "p50_ms", 2.0),
        ("p99", "p99_ms", 20.0),
        ("evicting-p99", "evicting_p99_ms", 100.0),
    ):
        suite.row(f"standard-decision-{name}", "ms", how, target=target)(lambda key=key: _figure(key))
    suite.row(
        "standard-burst", "jobs/s", "10,000 submissions in batches of 100", target=500.0, better="higher"
    )(lambda: _figure("jobs_per_s"))
    suite.row("standard-growth-2x", "x", "p50 with twice the nodes and jobs over that of one", target=2.0)(
        lambda: Found(busy(2)["p50_ms"] / busy()["p50_ms"], _facts(busy(2)))
    )
    replay = Replay("philly_2017_82k", 63, 8, "standard")
    suite.row("cpu-82k-standard", "s", replay.how, target=60.0)(cpu(replay))
    suite.row("mem-82k-standard", "MiB", replay.how, target=400.0)(peak(replay))


def _figure(key: str) -> Found:
    found = busy()
    if found[key] is None:
        raise MeasureError(f"nothing was measured for {key}")
    return Found(found[key], _facts(found))


def _facts(found: dict[str, Any]) -> str:
    return f"{found['running']} running, {found['pending']} pending, {found['evicting']} decisions that evict"
