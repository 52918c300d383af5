"""The trace's clock may say anything at the first submission: the report counts from there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from report_folder import edit_json

import trainmaster as tm
from trainmaster.report import load_records, write_report
from trainmaster.report.dates import Calendar

DAY = 86_400
MONDAY = 1_700_438_400
"""2023-11-20 00:00 UTC."""


def result_folder(folder: Path, first_s: int) -> Path:
    """Two policies on a log of 60 jobs over two days, the first submitted at `first_s`."""
    folder.mkdir()
    log = folder / "log.csv"
    rows = [
        f"j{i},{'ab'[i % 2]},{(1, 2, 8)[i % 3]},{first_s + i * DAY // 30},{900 + i * 397 % 9000}"
        for i in range(60)
    ]
    log.write_text("\n".join(["job_id,tenant,num_gpus,submit_s,duration_s", *rows, ""]))
    result = tm.simulate(tm.load_trace(log), tm.Cluster.homogeneous(1, 8), "fifo,srtf")
    result.trace["path"] = "log.csv"
    result.write(folder, report=write_report)
    return folder


def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8").replace("\xa0", " ")


@pytest.mark.parametrize("first_s", [1, 7 * DAY, 123_456_789])
def test_the_clock_changes_nothing(tmp_path: Path, first_s: int) -> None:
    """As in a slice, which keeps the clock of its trace."""
    zero, later = result_folder(tmp_path / "zero", 0), result_folder(tmp_path / "later", first_s)
    assert page(zero) == page(later)
    assert not re.search(r"\d UTC", page(zero))


def test_seconds_since_1970_only_add_dates(tmp_path: Path) -> None:
    zero, dated = result_folder(tmp_path / "zero", 0), result_folder(tmp_path / "dated", MONDAY)
    with_dates = page(dated)
    for date in (
        "submitted over 1 d 23 h, 2023-11-20 00:00 to 2023-11-21 23:12 UTC",
        "the last submission, 1 d 23 h after the first (2023-11-21 23:12 UTC)",
        "; the dates below it are UTC",
    ):
        assert date in with_dates
        with_dates = with_dates.replace(date, re.sub(r",? ?\(?2023.*UTC\)?|; the dates.*", "", date))
    # The hours of the lanes, the dates below the time axis and the room for them.
    with_dates = re.sub(r" \(2023-11-2\d \d\d:\d\d to (2023-11-2\d )?\d\d:\d\d UTC\)", "", with_dates)
    with_dates, dates = re.subn(r'<text [^>]* y="249"[^>]*>(2\d Nov|\d\d:\d\d)</text>', "", with_dates)
    with_dates = with_dates.replace(f'"start":{MONDAY}.0', '"start":null')
    with_dates = re.sub(r'viewBox="0 0 (\d+) 259"', r'viewBox="0 0 \1 244"', with_dates)
    assert dates > 4
    assert with_dates == page(zero)


def test_the_series_say_where_their_clock_starts(tmp_path: Path) -> None:
    folder = result_folder(tmp_path / "later", MONDAY)
    for run in json.loads((folder / "series.json").read_text())["runs"]:
        assert (run["buckets"]["first_submission_s"], run["buckets"]["start_s"]) == (MONDAY, 0)
        assert run["lanes"]["segments"]
    assert load_records(folder).calendar == Calendar(MONDAY)


def test_dates_may_be_known_where_the_clock_begins_at_0(tmp_path: Path) -> None:
    """As those of a Slurm log, in local time; the first job may be one that can't run."""
    folder = result_folder(tmp_path / "relative", 500)

    def tell(document: Any) -> None:
        document["trace"] |= {"clock": "relative", "start_s": 100, "start_unix_s": MONDAY, "zone": "local"}

    edit_json(folder / "summary.json", tell)
    assert load_records(folder).calendar == Calendar(MONDAY + 400, "")
    write_report(folder, folder / "report.html")
    assert "the last submission, 1 d 23 h after the first (2023-11-21 23:18): what" in page(folder)
    assert "the dates below it are in the local time of the log." in page(folder)
    assert not re.search(r"\d UTC", page(folder))


def test_ticks_name_a_day_once() -> None:
    assert Calendar(MONDAY).ticks([0, 6 * 3600, DAY]) == ["20 Nov", "06:00", "21 Nov"]
    assert Calendar(None).ticks([0, 1]) == []
