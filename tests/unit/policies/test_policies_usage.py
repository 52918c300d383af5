"""Decayed usage: known answers, and figures that reading doesn't change."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.model.errors import EngineError, InputError
from trainmaster.policies.parts.shares import DecayedUsage

HOUR = 3_600_000_000_000


def test_without_a_half_life_it_is_the_exact_integral() -> None:
    usage = DecayedUsage(None)
    usage.hold("a", 3_000, now=10)
    usage.hold("a", 500, now=10 + 3**40)
    assert usage.used("a", 10 + 3**40 + 7) == 3_000 * 3**40 + 500 * 7
    assert usage.used("b", 99) == 0


def test_half_is_forgotten_after_each_half_life() -> None:
    usage = DecayedUsage(HOUR)
    usage.hold("a", 8_000, now=0)
    usage.hold("a", 0, now=HOUR)
    at_end = usage.used("a", HOUR)
    # The integral of 8000 · 2^(-age) over one half-life: 8000 / (2 ln 2).
    assert at_end == pytest.approx(8_000 * HOUR / (2 * 0.6931471805599453), rel=1e-12)
    assert usage.used("a", 2 * HOUR) == at_end / 2
    assert usage.used("a", 11 * HOUR) == at_end / 1024
    assert usage.used("a", 10**9 * HOUR) == 0


def test_holding_for_ever_comes_to_a_standstill() -> None:
    usage = DecayedUsage(HOUR)
    usage.hold("a", 1_000, now=0)
    assert usage.used("a", 200 * HOUR) == pytest.approx(1_000 * HOUR / 0.6931471805599453, rel=1e-12)


def test_a_short_time_is_not_rounded_away() -> None:
    usage = DecayedUsage(30 * 24 * HOUR)
    usage.hold("a", 1_000, now=0)
    assert usage.used("a", 1) == pytest.approx(1_000, rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(1, 5 * HOUR), st.integers(0, 64_000)), min_size=1, max_size=8),
    st.lists(st.integers(0, 40 * HOUR), max_size=8),
)
def test_reading_changes_nothing(steps: list[tuple[int, int]], looks: list[int]) -> None:
    silent, watched = DecayedUsage(HOUR), DecayedUsage(HOUR)
    times = [0]
    for wait, _ in steps:
        times.append(times[-1] + wait)
    for (now, then), (_, milli) in zip(pairwise(times), steps, strict=True):
        for usage in (silent, watched):
            usage.hold("a", milli, now)
        for look in looks:
            if now <= look <= then:
                watched.used("a", look)
    assert silent.used("a", times[-1]) == watched.used("a", times[-1])


@given(st.integers(1, 100 * HOUR), st.integers(1, 100 * HOUR), st.integers(0, 64_000))
def test_holding_on_without_a_change_is_the_same_but_for_rounding(one: int, two: int, milli: int) -> None:
    whole, halves = DecayedUsage(HOUR), DecayedUsage(HOUR)
    whole.hold("a", milli, 0)
    halves.hold("a", milli, 0)
    halves.hold("a", milli, one)
    assert halves.used("a", one + two) == pytest.approx(whole.used("a", one + two), rel=1e-12)


def test_time_goes_forward_and_nobody_holds_less_than_nothing() -> None:
    usage = DecayedUsage(HOUR)
    usage.hold("a", 1, now=5)
    with pytest.raises(EngineError, match="usage of queue a at 4 ns was asked after that at 5 ns"):
        usage.hold("a", 2, now=4)
    with pytest.raises(EngineError, match="queue a holds -1"):
        usage.hold("a", -1, now=9)
    for half_life in (0, -1):
        with pytest.raises(InputError, match="the half-life is"):
            DecayedUsage(half_life)
