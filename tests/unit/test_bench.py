"""The benchmark harness: rows, selection, missing data, derived traces. No figure is judged here."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
KEYS = {"name", "value", "unit", "target", "better", "ok", "how", "note"}

PROMISED = {
    "known-pool-demo-philly-1week-400gpus-las": 1e-9,
    "known-pool-philly-2017-82k-500gpus-srtf": 1e-9,
    "known-node-philly-2017-attempts-152k-1000gpus-fifo": 1e-9,
    "cpu-82k-fifo": 3.0,
    "cpu-82k-srtf": 10.0,
    "cpu-82k-las": 15.0,
    "mem-82k-fifo": 250.0,
    "mem-82k-srtf": 250.0,
    "mem-82k-las": 250.0,
    "cpu-152k-fifo": 6.0,
    "growth-10x-fifo": 12.0,
    "growth-10x-srtf": 12.0,
    "growth-10x-las": 12.0,
    "mem-10x-fifo": 800.0,
    "mem-10x-srtf": 800.0,
    "mem-10x-las": 800.0,
    "parallel-cores-used": 1.5,
    "cpu-help": 0.35,
    "import-heavy-modules": 0.0,
    "testbed-srtf": 12.0,
    "testbed-srsf": 12.0,
    "testbed-las": 12.0,
    "testbed-order": 1.0,
    "testbed-ranks-srtf": 0.9,
    "testbed-srtf-stretched": 12.0,
    "testbed-srsf-stretched": 12.0,
    "testbed-las-stretched": 12.0,
    "testbed-order-stretched": 1.0,
    "same-bytes-hash-seeds": 1.0,
    "same-bytes-jobs": 1.0,
    "same-bytes-interleaved": 1.0,
    "peers-fifo": 0.3,
    "peers-srtf": 0.5,
    "peers-las": 0.5,
    "cpu-read-150k": 2.0,
    "standard-decision-p50": 2.0,
    "standard-decision-p99": 20.0,
    "standard-decision-evicting-p99": 100.0,
    "standard-burst": 500.0,
    "standard-growth-2x": 2.0,
    "cpu-82k-standard": 60.0,
    "mem-82k-standard": 400.0,
}
"""Names and targets that stay."""


class Modules:
    """The modules of bench/, imported as bench/run.py imports them."""

    def __getattr__(self, name: str) -> ModuleType:
        return importlib.import_module(name)


@pytest.fixture(scope="module")
def bench() -> Iterator[Modules]:
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield Modules()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCH)):
            del sys.modules[name]


def run_core(*words: str, data: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "core", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "TRAINMASTER_DATA": data},
    )


# -- rows -----------------------------------------------------------------------------------


def test_names_are_unique_and_kebab_case(bench: Modules) -> None:
    names = [row.name for row in bench.core.SUITE.rows]
    assert len(set(names)) == len(names) > 70
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_promised_rows_keep_their_names_and_targets(bench: Modules) -> None:
    targets = {row.name: row.target for row in bench.core.SUITE.rows}
    assert {name: targets.get(name) for name in PROMISED} == PROMISED


def test_two_rows_of_one_name_are_refused(bench: Modules) -> None:
    suite = bench.support.Suite("twins")
    suite.row("a", "s", "how")(lambda: bench.support.Found(1.0))
    with pytest.raises(ValueError, match="two rows are named a"):
        suite.row("a", "s", "how")


@pytest.mark.parametrize(
    ("value", "target", "better", "ok"),
    [
        (1.0, 1.0, "lower", True),
        (1.1, 1.0, "lower", False),
        (1.0, 1.0, "higher", True),
        (0.9, 1.0, "higher", False),
        (5.0, None, "lower", None),
    ],
)
def test_a_value_is_judged_by_its_target(
    bench: Modules, value: float, target: float | None, better: str, ok: bool | None
) -> None:
    row = bench.support.Row("a", "s", "how", lambda: bench.support.Found(value, "why"), target, better)
    assert row.entry() == {
        "name": "a",
        "value": value,
        "unit": "s",
        "target": target,
        "better": better,
        "ok": ok,
        "how": "how",
        "note": "why",
    }


def test_what_cannot_be_measured_is_no_success(bench: Modules) -> None:
    def missing() -> Any:
        raise bench.support.MissingDataError("no such file")

    def failing() -> Any:
        return bench.support.run([sys.executable, "-c", "import sys; sys.exit('boom')"])

    absent = bench.support.Row("a", "s", "how", missing, 1.0).entry()
    failed = bench.support.Row("b", "s", "how", failing, 1.0).entry()
    assert (absent["value"], absent["ok"], absent["note"]) == (None, None, "not measured: no such file")
    assert (failed["value"], failed["ok"], failed["note"]) == (None, False, "failed: exit code 1: boom")


# -- the command ----------------------------------------------------------------------------


def test_without_data_every_row_is_there_and_most_are_null(tmp_path: Path, bench: Modules) -> None:
    # Those rows make their own input, and take long.
    done = run_core("--skip", "standard-", "forecast-", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "core.json").read_text())
    names = [row.name for row in bench.core.SUITE.rows]
    assert [row["name"] for row in rows] == [
        name for name in names if "standard-" not in name and "forecast-" not in name
    ]
    assert all(set(row) == KEYS for row in rows)
    assert {row["name"] for row in rows if row["value"] is not None} == {"cpu-help", "import-heavy-modules"}
    for row in rows:
        if row["value"] is None:
            assert row["ok"] is None
            assert row["note"].startswith("not measured: TRAINMASTER_DATA")
    assert [path.name for path in tmp_path.iterdir()] == ["core.json"]


def test_only_selects(tmp_path: Path) -> None:
    done = run_core("--only", "heavy-modules", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [row] = json.loads((tmp_path / "core.json").read_text())
    assert (row["name"], row["value"], row["ok"]) == ("import-heavy-modules", 0.0, True)
    assert "import-heavy-modules" in done.stdout
    assert "1 of 1 targets reached" in done.stdout


def test_only_that_matches_nothing_is_bad_usage(tmp_path: Path) -> None:
    done = run_core("--only", "no-such-row", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "no row of core contains 'no-such-row'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_list_measures_nothing(bench: Modules) -> None:
    done = run_core("--list", "--only", "82k-las")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert listed == [row.name for row in bench.core.SUITE.rows if "82k-las" in row.name]
    assert "<= 15" in done.stdout


def test_a_small_replay_is_measured(tmp_path: Path) -> None:
    """A folder with one short trace in the place of a real one."""
    write_trace(tmp_path / "data" / "traces" / "demo_philly_1week.csv.gz")
    done = run_core("--only", "peers-fifo", "--out", str(tmp_path), data=str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads((tmp_path / "core.json").read_text())}
    assert set(rows) == {"peers-fifo", "loop-peers-fifo", "peers-fifo-default", "loop-peers-fifo-default"}
    assert all(row["value"] is not None for row in rows.values())
    assert rows["loop-peers-fifo"]["ok"] is None
    assert "--predictor oracle" in rows["peers-fifo"]["how"]
    assert "$TRAINMASTER_DATA/traces/demo_philly_1week.csv.gz" in rows["peers-fifo"]["how"]


# -- measuring ------------------------------------------------------------------------------


def test_a_child_is_measured_with_its_own_children(bench: Modules) -> None:
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    code = f"import subprocess, sys; print('out'); subprocess.run([sys.executable, '-c', {spin!r}])"
    usage = bench.support.run([sys.executable, "-c", code])
    assert usage.stdout == "out\n"
    assert usage.cpu_s >= 0.2
    assert usage.peak_mib > 1
    assert usage.others >= 0


@pytest.mark.parametrize(("cpu_s", "runs"), [(0.1, 5), (5.0, 3), (15.0, 3), (16.0, 2), (46.0, 1)])
def test_long_measurements_are_repeated_less(bench: Modules, cpu_s: float, runs: int) -> None:
    usage = bench.support.Usage(cpu_s, cpu_s, 1.0)
    assert len(bench.support.repeated(lambda: usage)) == runs


def test_ranks_and_their_correlation(bench: Modules) -> None:
    assert bench.testbed.ranks([30.0, 10.0, 20.0, 20.0]) == [4.0, 1.0, 2.5, 2.5]
    assert bench.testbed.rank_correlation([1.0, 2.0, 3.0], [10.0, 100.0, 1000.0]) == pytest.approx(1.0)
    assert bench.testbed.rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    # By hand: ranks (1, 2, 3, 4) and (1, 3, 2, 4) give 1 - 6 * 2 / (4 * 15).
    assert bench.testbed.rank_correlation([1, 2, 3, 4], [5, 7, 6, 8]) == pytest.approx(0.8)


def test_relative_error(bench: Modules) -> None:
    assert bench.known.relative_error(11.0, 10.0) == pytest.approx(0.1)
    assert bench.known.relative_error(0.5, 0.0) == 0.5
    assert bench.known.relative_error(0.0, 0.0) == 0.0


def test_every_known_line_has_a_row(bench: Modules, data_dir: Path) -> None:
    rows = {
        (level, trace, nodes * gpus, policy)
        for level, trace, nodes, gpus, policies in bench.known.LINES
        for policy in policies
    }
    assert rows == set(bench.known.known_lines())


# -- derived traces ---------------------------------------------------------------------------

HEADER = ["job_id", "submit_s", "duration_s", "num_gpus"]
ROWS = [["a", "0.0", "100.0", "1"], ["b", "10.0", "50.0", "2"], ["c", "10.0", "200.0", "8"]]


def write_trace(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        csv.writer(file).writerows([HEADER, *ROWS])
    return path


def read_trace(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == HEADER
    return rows


@pytest.fixture
def source(bench: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(bench.inputs, "CACHE", tmp_path / "cache")
    bench.inputs.derived.cache_clear()
    yield write_trace(tmp_path / "week.csv.gz")
    bench.inputs.derived.cache_clear()


def test_an_unchanged_trace_is_the_trace_itself(bench: Modules, source: Path) -> None:
    assert bench.inputs.derived(source) == source


def test_copies_follow_one_another_under_scrambled_ids(bench: Modules, source: Path) -> None:
    rows = read_trace(bench.inputs.derived(source, copies=5))
    assert [float(row[1]) for row in rows[:9]] == [0, 10, 10, 11, 21, 21, 22, 32, 32]
    assert [row[2:] for row in rows] == [row[2:] for row in ROWS] * 5
    ids = [int(row[0]) for row in rows]
    assert sorted(ids) == list(range(15)) != ids


def test_stretched_and_squeezed(bench: Modules, source: Path) -> None:
    assert read_trace(bench.inputs.derived(source, stretch=1.5, squeeze=2)) == [
        ["a", "0.0", "150.0", "1"],
        ["b", "5.0", "75.0", "2"],
        ["c", "5.0", "300.0", "8"],
    ]


def test_a_derived_trace_is_kept_until_its_source_changes(bench: Modules, source: Path) -> None:
    first = bench.inputs.derived(source, copies=2)
    content = first.read_bytes()
    first.unlink()
    bench.inputs.derived.cache_clear()
    assert bench.inputs.derived(source, copies=2).read_bytes() == content
    with gzip.open(source, "at", newline="") as file:
        csv.writer(file).writerow(["d", "20.0", "1.0", "1"])
    bench.inputs.derived.cache_clear()
    assert bench.inputs.derived(source, copies=2) != first


def test_ids_never_collide(bench: Modules) -> None:
    prime = bench.inputs.PRIME
    assert all(prime % divisor for divisor in range(2, int(prime**0.5) + 1))
    assert prime > 10 * 152_000
