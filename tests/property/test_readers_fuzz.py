"""No input whatever breaks a reader: an InputError of one line, or a trace whose counts add up."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.testing.readers import assert_counts_add_up, mutations
from trainmaster.testing.trace_samples import SAMPLES, Sample
from trainmaster.traces import FORMATS, load_trace
from trainmaster.traces.problems import RowFault
from trainmaster.traces.rows import Rows

FUZZ = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def check(path: Path, format: str, strict: bool = False) -> None:
    try:
        trace = load_trace(path, format=format, strict=strict)
    except InputError as error:
        text = str(error)
        assert text and "\n" not in text
        assert "the reader" not in text  # it would be a fault of ours
        assert error.file is not None
    else:
        assert_counts_add_up(trace)
        if strict:
            assert trace.problems.dropped == {}


def sample_in(folder: Path, name: str) -> tuple[Sample, Path]:
    here = folder / name
    here.mkdir(exist_ok=True)
    return SAMPLES[name], SAMPLES[name].write(here)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=200))
@FUZZ
def test_random_bytes(name: str, folder: Path, data: bytes) -> None:
    _, path = sample_in(folder, name)
    path.write_bytes(data)
    check(path, name)
    check(path, "auto")


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=60), at=st.floats(0, 1))
@FUZZ
def test_random_bytes_inside(name: str, folder: Path, data: bytes, at: float) -> None:
    sample, path = sample_in(folder, name)
    whole = sample.text.encode()
    place = int(at * len(whole))
    path.write_bytes(whole[:place] + data + whole[place:])
    check(path, name)


@pytest.mark.parametrize("name", FORMATS)
@given(seed=st.integers(0, 2**32), strict=st.booleans())
@FUZZ
def test_damaged_rows(name: str, folder: Path, seed: int, strict: bool) -> None:
    sample, path = sample_in(folder, name)
    for damaged in mutations(sample.text, seed=seed, count=4):
        path.write_text(damaged, encoding="utf-8")
        check(path, name, strict)
        check(path, "auto", strict)


@pytest.mark.parametrize("name", ["philly", "pai"])
@given(seed=st.integers(0, 2**32))
@FUZZ
def test_damaged_files_beside(name: str, folder: Path, seed: int) -> None:
    sample, path = sample_in(folder, name)
    for beside, text in sample.beside.items():
        for damaged in mutations(text, seed=seed, count=3):
            (path.parent / beside).write_text(damaged, encoding="utf-8")
            check(path, name)


@pytest.mark.parametrize("name", FORMATS)
@given(cut=st.floats(0, 1), flip=st.integers(0, 10_000))
@FUZZ
def test_damaged_gzip(name: str, folder: Path, cut: float, flip: int) -> None:
    sample, path = sample_in(folder, name)
    packed = bytearray(gzip.compress(sample.text.encode(), mtime=0))
    packed[flip % len(packed)] ^= 1 << flip % 8
    path.write_bytes(packed[: int(cut * len(packed)) + 1])
    check(path, name)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.just("2017-11-05 01:30:00"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "jobid",
                    "vc",
                    "attempts",
                    "start_time",
                    "end_time",
                    "detail",
                    "ip",
                    "gpus",
                    "submitted_time",
                ]
            ),
            inner,
            max_size=9,
        )
    ),
    max_leaves=20,
)


@given(records=st.lists(json_values, max_size=4))
@FUZZ
def test_philly_records_of_any_shape(folder: Path, records: list[object]) -> None:
    _, path = sample_in(folder, "philly")
    path.write_text(json.dumps(records), encoding="utf-8")
    check(path, "philly")
    trace_rows = load_trace(path, format="philly").problems.rows
    assert trace_rows == len(records)


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d", ""]),
            st.sampled_from(["0", "5", "-1", "nan", "1e999", "x", "", "3.5"]),
            st.sampled_from(["10", "0", "-2", "inf", "", "0.5", "1e-12"]),
            st.sampled_from(["1", "8", "0", "0.46", "-1", "nan", "", "1e30", "0.0001"]),
        ),
        max_size=12,
    )
)
@FUZZ
def test_no_row_of_a_csv_is_lost(folder: Path, rows: list[tuple[str, str, str, str]]) -> None:
    path = folder / "rows.csv"
    lines = ["job_id,submit_s,duration_s,num_gpus", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    trace = load_trace(path)
    assert len(rows) == len(trace) + trace.problems.dropped_rows
    assert_counts_add_up(trace)


@given(
    ids=st.lists(st.text(alphabet='ab,"\n\r\t ;x\x1b', min_size=1, max_size=9), max_size=9),
    first=st.booleans(),
)
@FUZZ
def test_every_record_of_a_quoted_csv_is_a_job_or_counted(folder: Path, ids: list[str], first: bool) -> None:
    turn = slice(None) if first else slice(None, None, -1)
    path = folder / "quoted.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["job_id", "submit_s", "duration_s", "num_gpus"][turn])
        writer.writerows([name, 0, 5, 1][turn] for name in ids)
    trace = load_trace(path)
    assert trace.problems.rows == len(ids)
    assert_counts_add_up(trace)


@given(lines=st.lists(st.text(alphabet='a,"1 ', max_size=12), max_size=12))
@FUZZ
def test_rows_pass_over_no_line(lines: list[str]) -> None:
    """Every line is a row, blank, or within the lines that a fault names."""
    covered = set()
    for number, row in Rows([f"{line}\n" for line in lines], ","):
        more = 0
        if isinstance(row, RowFault) and row.reason == "line_break":
            more = int(row.message.split()[-2])
        covered.update(range(number, number + more + 1))
    blank = {number for number, line in enumerate(lines, 1) if not line}
    assert covered | blank == set(range(1, len(lines) + 1))


@given(lines=st.lists(st.text(alphabet='a,"1 ', max_size=12), max_size=12))
@FUZZ
def test_well_formed_lines_are_split_as_csv_does(lines: list[str]) -> None:
    text = [f"{line}\n" for line in lines]
    found = [row for _, row in Rows(text, ",")]
    if not any(isinstance(row, RowFault) for row in found):
        assert found == [row for row in csv.reader(text) if row]
