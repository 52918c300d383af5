"""The comparison table of the terminal."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.report import comparison_table, comparison_text
from trainmaster.report.records import as_run

GOLDEN = Path(__file__).parents[2] / "golden"
CLUSTER = {"gpus": 256, "nodes": 32}


def run(
    policy: str, jct: float, median: float, p99: float, wait: float, stops: int, **more: Any
) -> dict[str, Any]:
    figures = {"mean_jct_s": jct, "median_jct_s": median, "p99_jct_s": p99, "mean_wait_s": wait}
    rest = {"preemptions": stops, "utilization": 0.872, "makespan_s": 1_522_231.0}
    return {"policy": policy, "cluster": CLUSTER, "seed": 0, **figures, **rest, **more}


WEEK = [
    run("fifo", 92314.1, 28897.0, 371183.0, 76397.2, 0),
    run("fifo(backfill=greedy)", 26209.2, 9685.0, 292611.0, 10292.2, 0, makespan_s=1_518_476.0),
    run("sjf", 21394.2, 2999.0, 283389.0, 5477.3, 0, utilization=0.8561, makespan_s=1_549_809.0),
    run("srtf", 18654.0, 492.0, 322679.0, 2737.4, 4895, utilization=0.684, makespan_s=1_940_225.0),
    run("las", 25373.8, 581.0, 374543.0, 9458.1, 5098, utilization=0.881, makespan_s=1_506_861.0),
]
SWEEP = [run_ | {"cluster": {"gpus": 8 * n, "nodes": n}} for n in (16, 32) for run_ in WEEK[::3]]
DEADLINES = [
    item | {"miss_rate": rate, "fairness_loss": loss}
    for item, rate, loss in zip(
        WEEK, (0.41, 0.33, 0.07, 0.07, None), (0.12, 0.3, 0.312, 0.25, 0.04), strict=True
    )
]


@pytest.mark.parametrize(
    ("name", "runs", "width", "ascii_only"),
    [
        ("comparison_80", WEEK, 80, False),
        ("comparison_120", WEEK, 120, False),
        ("comparison_ascii", WEEK, 80, True),
        ("comparison_one", WEEK[3:4], 80, False),
        ("comparison_sweep", SWEEP, 100, False),
        ("comparison_deadlines", DEADLINES, 110, False),
        ("comparison_empty", [{"policy": "fifo"}, {"policy": "sjf"}], 80, False),
    ],
)
def test_golden(name: str, runs: list[dict[str, Any]], width: int, ascii_only: bool) -> None:
    """Run with TRAINMASTER_UPDATE_GOLDEN=1 to write the files anew, then read the difference."""
    text = comparison_text(runs, width=width, ascii_only=ascii_only)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TRAINMASTER_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    if ascii_only:
        assert text.isascii()


def test_runs_and_their_documents_give_the_same_table() -> None:
    assert comparison_text([as_run(item) for item in WEEK]) == comparison_text(WEEK)


def test_marks_by_colour_too() -> None:
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=120, force_terminal=True, color_system="standard", legacy_windows=False).print(
        comparison_table(WEEK, width=120)
    )
    text = stream.getvalue()
    assert re.search(r"\x1b\[1;32m *●5 h 11 m", text) and re.search(r"\x1b\[31m *○1 d 2 h", text)


def test_equal_figures_share_the_mark_and_no_difference_has_none() -> None:
    text = comparison_text([WEEK[0], WEEK[1], WEEK[2] | {"mean_jct_s": 26209.9}])
    assert text.count("●7 h 17 m") == 2
    assert "●" not in comparison_text([WEEK[0], WEEK[0] | {"policy": "copy"}])


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.text("abc(=,)x", min_size=1, max_size=24), min_size=1, max_size=5, unique=True),
    jct=st.floats(0, 1e8),
    width=st.integers(60, 160),
)
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(
    names: list[str], jct: float, width: int
) -> None:
    runs = [run(name, jct * (i + 1), jct, jct * 3, jct / 2, i * 1000) for i, name in enumerate(names)]
    text = comparison_text(runs, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
