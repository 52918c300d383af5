"""Replays measured as a user starts them: `trainmaster simulate …`, a process of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from inputs import derived
from support import (
    DATA_VARIABLE,
    Found,
    Usage,
    data,
    loop_seconds,
    median_cpu,
    of_runs,
    program,
    repeated,
    run,
)

ORACLE = ("--predictor", "oracle")
FREE = ("--checkpoint-cost", "0", "--restore-cost", "0")


@dataclass(frozen=True)
class Replay:
    """One call of `trainmaster simulate`.

    Args:
        trace: name of a trace among the real ones.
        nodes, gpus_per_node: the cluster.
        policy: one, or several.
        options: further words of the command line.
        copies, stretch, squeeze: how the trace is changed first, see `inputs.derived`.
    """

    trace: str
    nodes: int
    gpus_per_node: int
    policy: str
    options: tuple[str, ...] = ()
    copies: int = 1
    stretch: float = 1.0
    squeeze: int = 1

    @property
    def words(self) -> list[str]:
        """The command line behind the trace."""
        return [
            *("--nodes", str(self.nodes), "--gpus-per-node", str(self.gpus_per_node)),
            *("--policy", self.policy),
            *self.options,
        ]

    @property
    def how(self) -> str:
        """The command, to be read."""
        changes = [
            f"{self.copies} copies in a row" if self.copies > 1 else "",
            f"durations x {self.stretch}" if self.stretch != 1 else "",
            f"arrivals {self.squeeze}x as fast" if self.squeeze > 1 else "",
        ]
        changed = ", ".join(change for change in changes if change)
        words = " ".join(f"'{word}'" if "(" in word else word for word in self.words)
        trace = f"${DATA_VARIABLE}/traces/{self.trace}.csv.gz"
        return f"trainmaster simulate {trace}{f' ({changed})' if changed else ''} {words} --out DIR"

    def run(self, out: Path, **environment: str) -> Usage:
        """Run it once, the results in folder `out`."""
        source = data(f"traces/{self.trace}.csv.gz")
        path = derived(source, copies=self.copies, stretch=self.stretch, squeeze=self.squeeze)
        return run([program(), "simulate", path, *self.words, "--out", out], **environment)


@dataclass(frozen=True)
class Measured:
    """What the runs of one replay took, and its figures.

    Args:
        usages: what each run took, whole process.
        events: of all policies together.
        summaries: one entry of summary.json per policy; `cpu_s` and the times of a
            decision are medians over the runs.
        loop_s: CPU time of the bare loop over as many events, measured right after.
    """

    usages: list[Usage]
    events: int
    summaries: list[dict[str, Any]]
    loop_s: float


@cache
def measured(replay: Replay) -> Measured:
    """Run a replay as often as `repeated` says."""
    documents: list[list[dict[str, Any]]] = []

    def once() -> Usage:
        with TemporaryDirectory() as out:
            usage = replay.run(Path(out))
            documents.append(_runs(Path(out)))
        return usage

    usages = repeated(once)
    summaries = documents[0]
    for index, summary in enumerate(summaries):
        for key in ("cpu_s", "decision_ms_mean", "decision_ms_p99"):
            summary[key] = median(document[index][key] for document in documents)
    events = sum(summary["events"] for summary in summaries)
    return Measured(usages, events, summaries, loop_seconds(events))


def _runs(out: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((out / "summary.json").read_text())["runs"]
    return runs


def cpu(replay: Replay, note: str = "") -> Callable[[], Found]:
    """CPU seconds of the whole process."""

    def measure() -> Found:
        found = median_cpu(measured(replay).usages)
        return Found(found.value, "; ".join(filter(None, (found.note, note))))

    return measure


def peak(replay: Replay) -> Callable[[], Found]:
    """Largest resident set of the whole process, MiB."""

    def measure() -> Found:
        usages = measured(replay).usages
        note = f"largest of {len(usages)} runs" if len(usages) > 1 else "one run"
        return Found(max(usage.peak_mib for usage in usages), note)

    return measure


def loop_ratio(replay: Replay, *, simulation: bool = False) -> Callable[[], Found]:
    """CPU time of the whole process, or of the simulation alone, over that of a bare heapq
    loop over as many events."""

    def measure() -> Found:
        took = measured(replay)
        alone = sum(summary["cpu_s"] for summary in took.summaries)
        cpu_s = alone if simulation else median_cpu(took.usages).value
        return Found(cpu_s / took.loop_s, f"{took.events:,} events; bare loop {took.loop_s:.3g} s")

    return measure


def figure(replay: Replay, key: str, note: str = "") -> Callable[[], Found]:
    """A figure of summary.json."""

    def measure() -> Found:
        took = measured(replay)
        return Found(took.summaries[0][key], "; ".join(filter(None, (of_runs(len(took.usages)), note))))

    return measure


@cache
def summaries(replay: Replay) -> list[dict[str, Any]]:
    """The figures of one run that nobody times, one entry of summary.json per policy."""
    with TemporaryDirectory() as out:
        replay.run(Path(out))
        return _runs(Path(out))


@cache
def jct_by_job(replay: Replay) -> dict[str, float]:
    """JCT of each job, seconds."""
    with TemporaryDirectory() as out:
        replay.run(Path(out))
        with Path(out, "jobs.csv").open(newline="") as file:
            return {job["job_id"]: float(job["jct_s"]) for job in csv.DictReader(file)}
