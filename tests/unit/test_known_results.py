"""The figures of an independent program on a real week, to 1e-9: README.md beside the files says how."""

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


def known(data_dir: Path, file: str) -> list[dict[str, Any]]:
    """The lines of a file of known results that are about the demo week."""
    lines = (data_dir / "known_results" / file).read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if line["trace"] == TRACE]


@pytest.fixture(scope="module")
def week(data_dir: Path) -> tm.Trace:
    return tm.load_trace(data_dir / "traces" / f"{TRACE}.csv.gz")


def compare(week: tm.Trace, lines: list[dict[str, Any]], cluster: tm.Cluster, placement: str) -> None:
    """Simulate every line at once and compare the figures that it gives."""
    policies = [SPECIFICATIONS.get(line["policy"], line["policy"]) for line in lines]
    free = tm.Costs(checkpoint_s=0, restore_s=0)
    result = tm.simulate(week, cluster, policies, predictor="oracle", placement=placement, costs=free)
    assert sum(result.trace["dropped"].values()) == lines[0]["dropped"]
    for run, line in zip(result.runs, lines, strict=True):
        given = [name for name in FIGURES if name in line]
        assert run["finished"] == line["jobs"]
        assert {name: run[name] for name in given} == pytest.approx(
            {name: line[name] for name in given}, rel=1e-9, abs=0
        ), run["policy"]


@pytest.mark.parametrize("gpus", [256, 400])
def test_pool(week: tm.Trace, data_dir: Path, gpus: int) -> None:
    lines = [line for line in known(data_dir, "pool_level.jsonl") if line["gpus"] == gpus]
    assert [line["policy"] for line in lines] == ["fifo", "fifo-greedy", "easy", "sjf", "srtf", "las"]
    compare(week, lines, tm.Cluster.homogeneous(gpus // 8, 8), "pool")


@pytest.mark.parametrize("nodes", [32, 50])
def test_pack(week: tm.Trace, data_dir: Path, nodes: int) -> None:
    lines = [line for line in known(data_dir, "node_level.jsonl") if line["nodes"] == nodes]
    assert [line["policy"] for line in lines] == ["fifo", "fifo-greedy"]
    compare(week, lines, tm.Cluster.homogeneous(nodes, lines[0]["gpus_per_node"]), "pack")


def test_no_line_about_the_week_is_left_out(data_dir: Path) -> None:
    assert {line["gpus"] for line in known(data_dir, "pool_level.jsonl")} == {256, 400}
    assert {line["nodes"] for line in known(data_dir, "node_level.jsonl")} == {32, 50}
