"""The parts of the generator, each against what it promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.traces.synth.arrivals import (
    BURST_GAP_S,
    Bursts,
    expected_dispersion,
    hourly_rates,
    make_bursts,
    solve_tail,
)
from trainmaster.traces.synth.curves import Durations, bisect, burst_sizes, even_quantiles, mean_burst
from trainmaster.traces.synth.people import users_of
from trainmaster.traces.synth.preset import PRESETS, DurationCurve, Preset
from trainmaster.traces.synth.streams import Streams

PHILLY = PRESETS["philly-like"]
EVERY_PRESET = pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))


@EVERY_PRESET
def test_the_duration_curve_goes_through_its_figures(preset: Preset) -> None:
    given = preset.durations
    curve = Durations(given)
    assert curve(np.array([0.1, 0.5, 0.99])) == pytest.approx([given.p10_s, given.median_s, given.p99_s])
    assert curve(np.array([1.0]))[0] == pytest.approx(given.longest_s)
    shares = (np.arange(1_000_000) + 0.5) / 1_000_000
    values = curve(shares)
    assert values.mean() == pytest.approx(given.mean_s, rel=0.003)
    assert (np.diff(values) >= 0).all()


def test_a_mean_that_no_curve_can_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"has a mean of 50 s \(between"):
        Durations(DurationCurve(10, 100, 1000, 50, 1.5, 10_000))


@EVERY_PRESET
def test_shares_of_a_preset_are_whole(preset: Preset) -> None:
    gpus, shares = zip(*preset.sizes, strict=True)
    assert list(gpus) == sorted(set(gpus))
    assert sum(shares) == pytest.approx(1)
    assert sum(preset.people.tenant_shares) == pytest.approx(1, abs=0.01)


@given(st.integers(1, 2000), st.floats(0.2, 1.5))
def test_bursts_have_the_mean_size_for_any_tail(count: int, tail: float) -> None:
    arrivals = PHILLY.arrivals
    shares = (np.arange(count) + 0.5) / count
    sizes = burst_sizes(arrivals, shares, tail)
    assert sizes.min() == 1
    assert sizes.max() <= arrivals.largest_burst
    several = sizes[sizes >= 2]
    if len(several) > 100:
        assert several.mean() == pytest.approx(arrivals.burst_mean, rel=0.05)
        assert several.sum() / sizes.sum() == pytest.approx(arrivals.burst_share, abs=0.02)
        assert sizes.mean() == pytest.approx(mean_burst(arrivals), rel=0.05)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=50), st.integers(0, 2**32))
def test_even_quantiles_keep_the_order_and_fill_every_place(scores: list[float], seed: int) -> None:
    array = np.array(scores)
    quantiles = even_quantiles(array, np.random.default_rng(seed))
    assert sorted(np.floor(np.clip(quantiles, 0, 1 - 1e-9) * len(scores)).astype(int)) == list(
        range(len(scores))
    )
    order = np.argsort(array, kind="stable")
    assert (np.diff(quantiles[order]) >= 0).all()


def test_streams_have_names() -> None:
    streams = Streams(3)
    assert streams("a").random() == Streams(3)("a").random()
    assert streams("a").random() != streams("b").random()
    assert streams("a").random() != Streams(4)("a").random()


def _bursts(count: int = 3000, seed: int = 0, tail: float = 1.0, span_s: float = 30 * 86400.0) -> Bursts:
    users = users_of(PHILLY.people, 300, Streams(seed)("users"))
    return make_bursts(PHILLY.arrivals, Streams(seed), count, users.activity, span_s, tail)


def test_more_bursts_start_with_the_same_sessions_and_users() -> None:
    few, many = _bursts(1000), _bursts(1500)
    assert (many.session[:1000] == few.session).all()
    assert (many.user[:1000] == few.user).all()


def test_a_user_submits_one_burst_after_the_other() -> None:
    bursts = _bursts()
    ends = bursts.submit[np.append(bursts.first[1:], bursts.jobs.sum()) - 1]
    for user in np.unique(bursts.user):
        mine = np.flatnonzero(bursts.user == user)
        mine = mine[np.argsort(bursts.start[mine])]
        assert (bursts.start[mine[1:]] - ends[mine[:-1]] >= BURST_GAP_S).all()
    inside = np.delete(bursts.gaps, bursts.first)
    assert (inside < BURST_GAP_S).all()
    assert (bursts.gaps[bursts.first] == 0).all()


def test_the_solved_tail_gives_the_dispersion() -> None:
    span_s = 60 * 86400.0
    users = users_of(PHILLY.people, 300, Streams(1)("users"))
    for wanted in (40.0, 160.0):
        arrivals = replace(PHILLY.arrivals, hourly_dispersion=wanted)
        tail = solve_tail(arrivals, Streams(1), 5000, users.activity, span_s)
        bursts = make_bursts(arrivals, Streams(1), 5000, users.activity, span_s, tail)
        assert expected_dispersion(arrivals, bursts, span_s) == pytest.approx(wanted, rel=0.03)
        hourly = np.bincount((bursts.submit % span_s // 3600).astype(int), minlength=60 * 24)
        assert hourly.var() / hourly.mean() == pytest.approx(wanted, rel=0.2)


def test_rates_peak_by_day_and_fall_at_the_weekend() -> None:
    rates = hourly_rates(PHILLY.arrivals, 7 * 24).reshape(7, 24)
    assert rates[0].argmax() in (14, 15)
    assert rates[0].max() / rates[0].min() == pytest.approx(1.35 / 0.65, rel=0.02)
    assert rates[5] == pytest.approx(0.6 * rates[4])


def test_users_split_the_tenants_and_more_demand_has_more_users() -> None:
    users = users_of(PHILLY.people, 374, Streams(0)("users"))
    assert len(users.activity) == pytest.approx(300, abs=10)
    by_tenant = np.bincount(users.tenant, users.activity)
    assert by_tenant == pytest.approx(PHILLY.people.tenant_shares)
    largest = users.activity[users.tenant == 0]
    assert largest[9] / largest[0] == pytest.approx(10**-PHILLY.people.user_skew)
    assert (users.factor > 1).all()
    assert np.median(users.factor) == pytest.approx(PHILLY.people.declared_factor, rel=0.1)
    assert len(users_of(PHILLY.people, 3740, Streams(0)("users")).activity) > 2900
    assert len(users_of(PHILLY.people, 0.1, Streams(0)("users")).activity) == 15


def test_bisect_finds_a_crossing_or_the_nearest_end() -> None:
    assert bisect(lambda x: x * x - 2, 0, 2) == pytest.approx(2**0.5)
    assert bisect(lambda x: x + 10, 0, 1) == pytest.approx(0)
    assert bisect(lambda x: x - 10, 0, 1) == pytest.approx(1)
