"""Texts become exact numbers, and exact numbers short texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.traces.problems import RowFault
from trainmaster.traces.schema import (
    LIMIT_S,
    format_gpus,
    format_number,
    format_seconds,
    gpus_field,
    parse_time,
    status_word,
    whole_field,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("2240194.0", 2_240_194_000_000_000),
        ("2240194", 2_240_194_000_000_000),
        ("0.1", 100_000_000),
        ("3163.091667", 3_163_091_667_000),
        ("7858722.000000", 7_858_722_000_000_000),
        ("17465.876284203045", 17_465_876_284_203),
        ("1700000000.000000001", 1_700_000_000_000_000_001),
        ("8999999999.999999999", 8_999_999_999_999_999_999),
        (" 5 ", 5_000_000_000),
        ("1e3", 1_000_000_000_000),
        ("-1.5", -1_500_000_000),
        ("1e-12", 0),
    ],
)
def test_times_are_exact(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "inf", "-inf", "1e400", "1e15", "-1e15", "1,5", "0x10", "1e999999999"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        parse_time(text)


@given(st.integers(-LIMIT_S * 10**9, LIMIT_S * 10**9))
def test_every_nanosecond_survives_the_round_trip(ns: int) -> None:
    assert parse_time(format_seconds(ns)) == ns


@given(st.integers(0, 10**12))
def test_every_milli_gpu_survives_the_round_trip(milli: int) -> None:
    assert gpus_field(format_gpus(milli)) == milli


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_the_round_trip(value: float) -> None:
    assert float(format_number(value)) == value


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert whole_field("8.0", "n", "bad") == 8
    for text in ("8.5", "1e30", "-1", "inf", ""):
        with pytest.raises(RowFault, match=r"whole number|finite|empty"):
            whole_field(text, "n", "bad", at_least=0)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Pass", "completed"),
        ("Killed", "cancelled"),
        ("TIMEOUT", "timeout"),
        ("", ""),
        ("OUT_OF_MEMORY", "out_of_memory"),
    ],
)
def test_statuses_have_common_words(text: str, word: str) -> None:
    assert status_word(text) == word
