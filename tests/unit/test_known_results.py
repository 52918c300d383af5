"""A published week gives the figures that two independent programs agree on, to 1e-9.

The long traces' lines of the same files are checked by `make bench`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trainmaster as tm

TRACE = "demo_philly_1week"
SPECIFICATIONS = {"fifo-greedy": "fifo(backfill=greedy)", "easy": "fifo(backfill=easy)"}
FIGURES = (
    "jobs",
    "mean_jct_s",
    "median_jct_s",
    "p99_jct_s",
    "mean_first_wait_s",
    "makespan_s",
    "preemptions",
)
LINES = [
    (level, policy, nodes)
    for level, policies in (
        ("pool", ("fifo", "fifo-greedy", "easy", "sjf", "srtf", "las")),
        ("node", ("fifo", "fifo-greedy")),
    )
    for policy in policies
    for nodes in (32, 50)
]


@pytest.fixture(scope="module")
def trace(data_dir: Path) -> tm.Trace:
    return tm.load_trace(data_dir / "traces" / f"{TRACE}.csv.gz")


@pytest.fixture(scope="module")
def known(data_dir: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The lines of this trace by (level, policy, nodes)."""
    lines = {}
    for level in ("pool", "node"):
        for text in (data_dir / "known_results" / f"{level}_level.jsonl").read_text().splitlines():
            line = json.loads(text)
            if line["trace"] == TRACE:
                nodes = line["gpus"] // 8 if level == "pool" else line["nodes"]
                lines[level, line["policy"], nodes] = line
    return lines


def test_no_line_is_left_out(known: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    assert sorted(known) == sorted(LINES)


@pytest.mark.parametrize(("level", "policy", "nodes"), LINES)
def test_figures_are_those_known(
    trace: tm.Trace,
    known: dict[tuple[str, str, int], dict[str, Any]],
    level: str,
    policy: str,
    nodes: int,
) -> None:
    line = known[level, policy, nodes]
    run = tm.simulate(
        trace,
        tm.Cluster.homogeneous(nodes, 8),
        SPECIFICATIONS.get(policy, policy),
        placement="pool" if level == "pool" else "pack",
        predictor="oracle",
        costs=tm.Costs(0, 0, 0),
    ).summary
    compared = [name for name in FIGURES if name in line]
    assert {name: run[name] for name in compared} == pytest.approx(
        {name: line[name] for name in compared}, rel=1e-9, abs=0
    )
