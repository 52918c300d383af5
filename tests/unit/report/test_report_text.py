"""Numbers as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.report import text

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse(shown: str) -> tuple[float, float]:
    """Seconds that a duration says, and its smallest unit."""
    parts = re.findall(r"([\d,.]+) ([smhd])", shown)
    assert " ".join(f"{amount} {unit}" for amount, unit in parts) == shown
    return sum(float(amount.replace(",", "")) * UNITS[unit] for amount, unit in parts), UNITS[parts[-1][1]]


@given(st.floats(0.05, 1e9))
def test_a_duration_says_what_it_means(seconds: float) -> None:
    said, _ = parse(text.duration(seconds))
    allowed = next(
        unit
        for limit, unit in ((9.95, 0.05), (3600, 0.5), (86_400, 30), (8.64e6, 1800), (1e10, 43_200))
        if seconds < limit
    )
    assert abs(said - seconds) <= allowed + 1e-6


@given(st.floats(0.05, 1e9))
def test_no_duration_has_60_minutes_or_24_hours(seconds: float) -> None:
    shown = text.duration(seconds)
    assert not re.search(r"\b(60 [ms]|24 h)\b", shown)
    assert len(re.findall("[smhd]", shown)) <= 2


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.01, "< 0.1 s"),
        (0.25, "0.2 s"),
        (9.96, "10 s"),
        (59.6, "1 m"),
        (3599.6, "1 h"),
        (86_399, "1 d"),
        (4 * 3600 + 31 * 60, "4 h 31 m"),
        (100 * 86_400, "100 d"),
        (-90, "−1 m 30 s"),
    ],
)
def test_known_durations(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (1, "100 %"), (0.999, "99.9 %"), (0.05, "5.0 %"), (0.00649, "0.65 %"), (0.00996, "1.0 %")],
)
def test_known_shares(share: float, shown: str) -> None:
    assert text.percent(share) == shown


def test_quantities_do_not_break() -> None:
    assert text.unbroken("in 1 d 2 h or 3 % of 4 jobs, < 0.1 s") == (
        "in 1\xa0d\xa02\xa0h or 3\xa0% of 4 jobs, <\xa00.1\xa0s"
    )
    assert text.unbroken("5 hours") == "5 hours"
