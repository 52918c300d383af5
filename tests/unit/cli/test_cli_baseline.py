"""`simulate --baseline`: which policy the report compares the others with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli_simulate import SMALL, TRACE, call


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "week.csv"
    path.write_text(TRACE)
    return path


def test_the_report_compares_with_the_baseline(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    words = ("--policy", "fifo,sjf,las(limit=60)", "--baseline", "las(limit=60)", "--out", tmp_path / "out")
    code, _, _ = call(capsys, "simulate", trace, *SMALL, *words)
    assert code == 0
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert document["baseline"] == "las(limit=60)"
    assert "--baseline 'las(limit=60)'" in document["command"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The others are compared with las(limit=60), as --baseline asks." in page


def test_a_baseline_that_is_not_replayed_is_refused(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, out, err = call(capsys, "simulate", trace, *SMALL, "--policy", "fifo,srtf", "--baseline", "strf")
    assert (code, out) == (2, "")
    assert err == "trainmaster: --baseline strf: not among the policies (did you mean 'srtf'?)\n"


def test_without_a_baseline_the_records_name_none(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    _, out, _ = call(capsys, "simulate", trace, *SMALL, "--policy", "fifo,srtf", "--json")
    assert "baseline" not in json.loads(out)
