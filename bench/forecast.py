"""Rows of forecasts: whether they come true, and how fast they are there."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from support import ROOT, Found, Suite, Usage, data, program, run

RUNS = ROOT / "bench" / "forecast_runs.py"
TRACE = "traces/demo_philly_1week.csv.gz"
CALIBRATION = (
    "bench/forecast_runs.py calibration demo_philly_1week: 40x8, standard, history; a state every 6 hours, "
    "32 draws, jobs that wait over 10 minutes; nobody is submitted after the trace's end"
)
BUSY = "trainmaster forecast on 1,000x8, 20 queues, --draws"


@cache
def calibration() -> dict[str, Any]:
    """Forecasts and what became of them."""
    found: dict[str, Any] = json.loads(run([sys.executable, RUNS, "calibration", data(TRACE)]).stdout)
    return found


@cache
def busy(draws: int, processes: int) -> Usage:
    """A forecast of the busy cluster."""
    with tempfile.TemporaryDirectory() as folder:
        state = json.loads(run([sys.executable, RUNS, "busy", Path(folder)]).stdout)
        words = ("--draws", str(draws), "--jobs", str(processes), "--json")
        return run([program(), "forecast", state["state"], *words])


def add(suite: Suite) -> None:
    """Add the rows."""
    suite.row(
        "forecast-coverage", "", f"{CALIBRATION}: true starts within p10 to p90", target=0.7, better="higher"
    )(lambda: _figure("coverage"))
    suite.row("forecast-coverage-at-most", "", "the same, not to be had by wide intervals", target=0.9)(
        lambda: _figure("coverage")
    )
    suite.row("forecast-width", "h", "mean width of these intervals")(lambda: _figure("width_h"))
    suite.row(
        "forecast-error-ratio",
        "x",
        "median absolute error of p50 over that of the mean wait of the last 100 jobs of that size",
        target=0.5,
    )(lambda: _ratio())
    suite.row("forecast-first-answer", "s", f"{BUSY} 1, reading the state included: CPU time", target=3.0)(
        lambda: _of(busy(1, 1))
    )
    suite.row(
        "forecast-32-draws", "s", f"{BUSY} 32 --jobs 2: half the CPU time, as on two idle cores", target=60.0
    )(lambda: _of(busy(32, 2), cores=2))


def _figure(name: str) -> Found:
    found = calibration()
    return Found(found[name], f"{found['cases']} cases of {found['states']} states")


def _of(usage: Usage, cores: int = 1) -> Found:
    note = f"wall {usage.wall_s:.1f} s while others used {usage.others:.1f} cores"
    return Found(usage.cpu_s / cores, note)


def _ratio() -> Found:
    found = calibration()
    ours, mean = found["error_s"], found["mean_wait_error_s"]
    return Found(ours / mean, f"{ours:.0f} s to {mean:.0f} s")
