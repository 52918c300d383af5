"""Exactness: the published figures of known_results, line by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from replay import FREE, ORACLE, Replay, summaries
from support import DATA_VARIABLE, Found, MeasureError, MissingDataError, Suite, data

SPECIFICATIONS = {"fifo-greedy": "fifo(backfill=greedy)", "easy": "fifo(backfill=easy)"}
"""What known_results calls a policy, where that isn't its specification."""

FIGURES = (
    "jobs",
    "mean_jct_s",
    "median_jct_s",
    "p99_jct_s",
    "mean_first_wait_s",
    "makespan_s",
    "preemptions",
)
"""What is compared, where the line has it."""

POOL_POLICIES = ("fifo", "fifo-greedy", "easy", "sjf", "srtf", "las")
LINES = (
    ("pool", "demo_philly_1week", 32, 8, POOL_POLICIES),
    ("pool", "demo_philly_1week", 50, 8, POOL_POLICIES),
    ("pool", "philly_2017_82k", 125, 4, ("fifo", "srtf")),
    ("node", "demo_philly_1week", 32, 8, ("fifo", "fifo-greedy")),
    ("node", "demo_philly_1week", 50, 8, ("fifo", "fifo-greedy")),
    ("node", "philly_2017_attempts_152k", 125, 8, ("fifo", "fifo-greedy")),
)
"""(file, trace, nodes, GPUs per node, policies): together every line of both files."""


def key_of(level: str, line: dict[str, Any]) -> tuple[str, str, int, str]:
    """Names a line: (file, trace, GPUs, policy)."""
    gpus = line["gpus"] if level == "pool" else line["nodes"] * line["gpus_per_node"]
    return level, line["trace"], gpus, line["policy"]


@cache
def known_lines() -> dict[tuple[str, str, int, str], dict[str, Any]]:
    """Every line of known_results."""
    lines = {}
    for level in ("pool", "node"):
        for text in data(f"known_results/{level}_level.jsonl").read_text().splitlines():
            line = json.loads(text)
            lines[key_of(level, line)] = line
    return lines


def relative_error(value: float, expected: float) -> float:
    """|value - expected| as a part of |expected|; absolute where that is 0."""
    return abs(value - expected) / (abs(expected) or 1.0)


def add(suite: Suite) -> None:
    """One row per line."""
    for level, trace, nodes, gpus_per_node, policies in LINES:
        placement = "pool" if level == "pool" else "pack"
        specifications = ",".join(SPECIFICATIONS.get(policy, policy) for policy in policies)
        replay = Replay(
            trace, nodes, gpus_per_node, specifications, (*ORACLE, *FREE, "--placement", placement)
        )
        for number, policy in enumerate(policies):
            gpus = nodes * gpus_per_node
            name = f"known-{level}-{trace.replace('_', '-')}-{gpus}gpus-{policy}"
            how = f"{replay.how}; {level}_level.jsonl"
            key = (level, trace, gpus, policy)
            suite.row(name, "relative error", how, target=1e-9)(_largest_error(replay, number, key))


def _largest_error(replay: Replay, number: int, key: tuple[str, str, int, str]) -> Callable[[], Found]:
    """The largest error among the figures of one line."""

    def measure() -> Found:
        line = known_lines().get(key)
        if line is None:
            raise MissingDataError(f"${DATA_VARIABLE}/known_results has no such line")
        summary = summaries(replay)[number]
        errors = {
            name: relative_error(summary[name], line[name])
            for name in FIGURES
            if name in line and summary[name] is not None
        }
        if len(errors) < sum(name in line for name in FIGURES):
            raise MeasureError("a figure is missing in summary.json")
        worst = max(errors, key=lambda name: errors[name])
        detail = f"; worst: {worst} {summary[worst]!r}, known {line[worst]!r}" if errors[worst] else ""
        return Found(errors[worst], f"largest of {len(errors)} figures{detail}")

    return measure
