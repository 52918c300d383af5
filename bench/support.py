"""What every benchmark suite is made of: rows, measured child processes, a yardstick.

A suite is an ordered list of rows. A row is a name, a target and a function that measures
its value; functions share measurements through caches, so any part of a suite can run
alone. Whatever is timed runs in a process of its own, one at a time, and its CPU time
(user + system, its children included) is what counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA_VARIABLE = "TRAINMASTER_DATA"
PATIENCE_S = 45.0
"""A measurement is repeated while all its runs together stay below this CPU time."""

QUICK_S = 2.0
"""What takes less CPU time than this is repeated more often."""


class MissingDataError(Exception):
    """What a row needs is not there; the row has no value then."""


class MeasureError(Exception):
    """What a row measures did not work; the row falls short then."""


@dataclass(frozen=True)
class Found:
    """What a row's function returns: the value, and what a reader should know of it."""

    value: float
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One figure of a suite.

    Args:
        name: stable; later versions are compared by it.
        unit: of the value and the target.
        how: the command or function that is measured.
        measure: returns the value.
        target: None = reported without one.
        better: "lower" or "higher".
    """

    name: str
    unit: str
    how: str
    measure: Callable[[], Found]
    target: float | None = None
    better: str = "lower"

    def entry(self) -> dict[str, Any]:
        """Measure; the row as it stands in out/bench/SUITE.json."""
        value: float | None = None
        ok: bool | None = None
        try:
            found = self.measure()
            value, note = float(f"{found.value:.6g}"), found.note
            if self.target is not None:
                ok = value <= self.target if self.better == "lower" else value >= self.target
        except MissingDataError as reason:
            note = f"not measured: {reason}"
        except MeasureError as reason:
            note, ok = f"failed: {reason}", False
        return {
            "name": self.name,
            "value": value,
            "unit": self.unit,
            "target": self.target,
            "better": self.better,
            "ok": ok,
            "how": self.how,
            "note": note,
        }


@dataclass
class Suite:
    """Rows in the order of the table."""

    name: str
    rows: list[Row] = field(default_factory=list)

    def row(
        self, name: str, unit: str, how: str, *, target: float | None = None, better: str = "lower"
    ) -> Callable[[Callable[[], Found]], Callable[[], Found]]:
        """Add a row whose value the decorated function measures."""
        if any(row.name == name for row in self.rows):
            raise ValueError(f"two rows are named {name}")

        def add(measure: Callable[[], Found]) -> Callable[[], Found]:
            self.rows.append(Row(name, unit, how, measure, target, better))
            return measure

        return add

    def selected(self, only: str, skip: Sequence[str] = ()) -> list[Row]:
        """The rows whose name contains `only`, and none of `skip`."""
        return [row for row in self.rows if only in row.name and not any(part in row.name for part in skip)]


# -- data ---------------------------------------------------------------------------------


def data(name: str) -> Path:
    """A file of the folder of real traces.

    Raises:
        MissingDataError: it isn't there.
    """
    folder = os.environ.get(DATA_VARIABLE, "")
    if not folder:
        raise MissingDataError(f"{DATA_VARIABLE} names no folder of real traces")
    path = Path(folder) / name
    if not path.exists():
        raise MissingDataError(f"${DATA_VARIABLE}/{name} is absent")
    return path


# -- child processes ----------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """What one child process took.

    Args:
        cpu_s: user + system time, its own children included.
        wall_s: from start to end.
        peak_mib: largest resident set of the process and its children.
        others: cores that all other processes of the machine used meanwhile, on average.
        stdout: what it printed.
    """

    cpu_s: float
    wall_s: float
    peak_mib: float
    others: float = 0.0
    stdout: str = ""


def run(command: Sequence[str | Path], **environment: str) -> Usage:
    """Run a command to its end and say what it took.

    The peak is never below what this process held when it started the child, so
    nothing large is kept here.

    Raises:
        MeasureError: its exit code isn't 0.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun, busy = time.perf_counter(), machine_cpu()
        with subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **environment}) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        wall_s, busy = time.perf_counter() - begun, machine_cpu() - busy
        if child.returncode != 0:
            err.seek(0)
            lines = err.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise MeasureError(f"exit code {child.returncode}: {lines[-1]}")
        out.seek(0)
        stdout = out.read().decode()
    cpu_s = usage.ru_utime + usage.ru_stime
    return Usage(cpu_s, wall_s, usage.ru_maxrss / 1024, max(0.0, busy - cpu_s) / wall_s, stdout)


def machine_cpu() -> float:
    """CPU seconds that all processes of the machine have used since it was started; 0 where
    the system (not Linux) doesn't tell."""
    statistics = Path("/proc/stat")
    if not statistics.exists():
        return 0.0
    _, user, nice, system, *_ = statistics.read_text().split(maxsplit=4)
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def program() -> Path:
    """The installed `trainmaster` command."""
    return Path(sys.executable).with_name("trainmaster")


def python(code: str, *arguments: str | Path) -> str:
    """Run a few lines of Python in a fresh interpreter; returns what they print."""
    return run([sys.executable, "-c", code, *arguments]).stdout


def repeated(once: Callable[[], Usage]) -> list[Usage]:
    """Three runs, five where they are quick, fewer where they are long (see `PATIENCE_S`)."""
    runs = [once()]
    most = 5 if runs[0].cpu_s < QUICK_S else 3
    while len(runs) < most and (len(runs) + 1) * runs[0].cpu_s <= PATIENCE_S:
        runs.append(once())
    return runs


def of_runs(count: int) -> str:
    """A note on how many runs are behind a figure."""
    return f"median of {count} runs" if count > 1 else "one run"


def median_cpu(runs: Sequence[Usage]) -> Found:
    """The median CPU time of repeated runs, seconds."""
    return Found(median(run.cpu_s for run in runs), of_runs(len(runs)))


# -- the yardstick ------------------------------------------------------------------------

JOBS_IN_HEAP = 1_000


def bare_loop(events: int) -> float:
    """CPU seconds of the least that a simulation of so many events can do in Python.

    A heap of 1,000 pending events (time, sequence); each step takes out the earliest and
    puts in a later one. No job, no state, no decision.
    """
    heap = [(number * 7_919 % 10_007, number) for number in range(JOBS_IN_HEAP)]
    heapify(heap)
    begun = time.process_time()
    for sequence in range(JOBS_IN_HEAP, JOBS_IN_HEAP + events):
        at, _ = heappop(heap)
        heappush(heap, (at + sequence * 7_919 % 10_007, sequence))
    return time.process_time() - begun


@cache
def loop_seconds(events: int) -> float:
    """`bare_loop`, measured once for each number of events (median of 3 where that is quick)."""
    first = bare_loop(events)
    return first if first > 2.0 else median([first, bare_loop(events), bare_loop(events)])
