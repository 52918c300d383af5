"""Same input, same bytes: under any hash seed, in one process or two, and interleaved."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replay import Replay
from support import Found, Suite, data, run

TIMES = ("cpu_s", "wall_s", "decision_ms_mean", "decision_ms_p99", "peak_rss_mib")
POLICIES = "fifo,fifo(backfill=easy),sjf,srtf,srsf,las,gittins,priority,drf,timeslice"
FILES = ("jobs.csv", "events.jsonl", "summary.json", "series.json")


def replay_with(jobs: int) -> Replay:
    """Some days under every policy, with an event log."""
    return Replay("demo_philly_1week", 32, 8, POLICIES, ("--limit", "1500", "--events", "--jobs", str(jobs)))


@cache
def hashes(jobs: int, hash_seed: str) -> dict[str, str]:
    """The hash of each file of the result, timing fields apart."""
    with TemporaryDirectory() as out:
        replay_with(jobs).run(Path(out), PYTHONHASHSEED=hash_seed)
        return {name: sha256(_without_times(Path(out, name))).hexdigest() for name in FILES}


def _without_times(path: Path) -> bytes:
    if path.name != "summary.json":
        return path.read_bytes()
    summary: dict[str, Any] = json.loads(path.read_text())
    for entry in summary["runs"]:
        for key in TIMES:
            del entry[key]
    return json.dumps(summary).encode()


def add(suite: Suite) -> None:
    """1 where the bytes are the same."""
    for name, what, one, other in (
        ("hash-seeds", "PYTHONHASHSEED=1 and 4242", (1, "1"), (1, "4242")),
        ("jobs", "--jobs 1 and --jobs 2", (1, "1"), (2, "1")),
    ):
        how = f"{', '.join(FILES)} of {replay_with(1).how} with {what}"
        suite.row(f"same-bytes-{name}", "holds", how, target=1.0, better="higher")(_same(one, other))

    how = "two threads simulate srtf and las in one process, and one after the other (bench/interleaved.py)"

    @suite.row("same-bytes-interleaved", "holds", how, target=1.0, better="higher")
    def interleaved() -> Found:
        script = Path(__file__).with_name("interleaved.py")
        usage = run([sys.executable, script, data("traces/demo_philly_1week.csv.gz")])
        turns, same = json.loads(usage.stdout)
        return Found(float(same), f"{turns:,} changes from one simulator to the other")


def _same(one: tuple[int, str], other: tuple[int, str]) -> Callable[[], Found]:
    def measure() -> Found:
        first, second = hashes(*one), hashes(*other)
        differing = [name for name in FILES if first[name] != second[name]]
        return Found(float(not differing), f"differ: {', '.join(differing)}" if differing else "all files")

    return measure
