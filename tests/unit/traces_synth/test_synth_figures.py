"""Long synthetic traces meet the published figures of their preset; short ones the load."""

from __future__ import annotations

from functools import cache

import pytest

from trainmaster.traces.statistics import TraceStatistics, describe
from trainmaster.traces.synth import PRESETS, synthesize

# As long and as loaded as the published logs (Philly: 109 days at 374 GPUs; Helios Venus:
# 167 days at 497 GPUs; Acme Seren: a month of its six, at the same rate a day).
_LONG = {
    "philly-like": {"days": 109.0, "load": 0.9, "nodes": 52},
    "helios-like": {"days": 167.0, "load": 0.44, "nodes": 141},
    "acme-like": {"days": 30.0, "load": 0.6, "nodes": 286},
}


@cache
def long_run(preset: str, seed: int = 0) -> TraceStatistics:
    return describe(synthesize(preset, seed=seed, **_LONG[preset]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("preset", "shares"),
    [("philly-like", (93.2, 4.5, 2.0, 0.4)), ("helios-like", (51.8, 13.0, 25.2, 10.0))],
)
def test_shares_of_sizes(preset: str, shares: tuple[float, ...]) -> None:
    found = [100 * size.share for size in long_run(preset).sizes]
    assert found == pytest.approx(shares, abs=0.06)


@pytest.mark.parametrize(
    ("preset", "median_s", "mean_s", "p99_s"),
    [
        ("philly-like", 1_144, 13_136, 254_758),
        ("helios-like", 204, 9_088, 172_800),
        ("acme-like", 122, 1_414.335, 28_800),
    ],
)
def test_durations(preset: str, median_s: float, mean_s: float, p99_s: float) -> None:
    duration = long_run(preset).duration
    assert duration.median_s == pytest.approx(median_s, rel=0.01)
    assert duration.mean_s == pytest.approx(mean_s, rel=0.01)
    assert duration.p99_s == pytest.approx(p99_s, rel=0.01)
    assert duration.max_s is not None
    assert duration.max_s <= PRESETS[preset].durations.longest_s


@pytest.mark.parametrize(("preset", "dispersion"), [("philly-like", 160), ("helios-like", 39)])
@pytest.mark.parametrize("seed", [0, 1])
def test_hourly_dispersion(preset: str, dispersion: float, seed: int) -> None:
    assert long_run(preset, seed).hourly_dispersion == pytest.approx(dispersion, rel=0.15)


def test_philly_bursts_are_those_of_one_user() -> None:
    bursts = long_run("philly-like").bursts
    assert bursts.by == "user"
    assert bursts.share == pytest.approx(0.87, abs=0.01)
    assert bursts.mean == pytest.approx(8, abs=0.3)


def test_philly_tenants_are_fifteen_with_half_of_the_jobs_in_one() -> None:
    shares = [tenant.share for tenant in long_run("philly-like").tenant_shares]
    assert len(shares) == 15
    assert shares[0] == pytest.approx(0.5, abs=0.1)
    assert shares[-1] < 0.01


def test_philly_needs_about_as_many_jobs_as_the_real_one_for_its_demand() -> None:
    assert long_run("philly-like").jobs == pytest.approx(82_247, rel=0.2)


def test_acme_seren_sizes_and_gpu_time() -> None:
    found = long_run("acme-like")
    assert found.mean_gpus == pytest.approx(5.68, rel=0.02)
    assert found.max_gpus == 1024
    assert found.gpu_hours is not None
    assert found.gpu_hours * 3600 / found.jobs == pytest.approx(21_510_622_575 / 663_813, rel=0.4)


@pytest.mark.parametrize(
    ("preset", "completed", "failed", "cancelled"),
    [
        ("philly-like", 0.604, 0.305, 0.09),
        ("helios-like", 0.624, 0.155, 0.221),
        ("acme-like", 0.497, 0.429, 0.075),
    ],
)
def test_statuses(preset: str, completed: float, failed: float, cancelled: float) -> None:
    found = {status.name: status.share for status in long_run(preset).statuses}
    expected = {"completed": completed, "failed": failed, "cancelled": cancelled}
    assert found == pytest.approx(expected, abs=0.01)


def test_cancelled_jobs_of_acme_take_more_time_than_their_number() -> None:
    cancelled = next(status for status in long_run("acme-like").statuses if status.name == "cancelled")
    assert cancelled.gpu_hours_share is not None
    assert cancelled.gpu_hours_share > 4 * cancelled.share


def test_larger_philly_jobs_run_longer() -> None:
    small, _, large, _ = (size.duration for size in long_run("philly-like").sizes)
    assert small.mean_s is not None and large.mean_s is not None
    assert 5 < large.mean_s / small.mean_s < 40


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("load", [0.3, 0.9, 1.4])
def test_a_week_has_the_load_asked_for_and_the_same_durations(preset: str, load: float) -> None:
    found = describe(synthesize(preset, days=7, load=load, nodes=32, seed=3))
    assert found.gpu_hours == pytest.approx(load * 256 * 7 * 24, rel=0.02)
    assert found.mean_demand_gpus == pytest.approx(load * 256, rel=0.1)
    curve = PRESETS[preset].durations
    assert found.duration.median_s == pytest.approx(curve.median_s, rel=0.03)
    assert found.duration.mean_s == pytest.approx(curve.mean_s, rel=0.15 if found.jobs < 1000 else 0.06)


@pytest.mark.parametrize("seed", range(6))
def test_every_week_of_philly_has_the_load_and_the_shares(seed: int) -> None:
    found = describe(synthesize("philly-like", days=7, load=0.9, nodes=32, seed=seed))
    assert found.gpu_hours == pytest.approx(0.9 * 256 * 7 * 24, rel=0.01)
    assert [size.share for size in found.sizes] == pytest.approx([0.9317, 0.0448, 0.02, 0.0035], abs=0.001)
    assert found.bursts.share == pytest.approx(0.87, abs=0.02)
    assert found.hourly_dispersion is not None
    assert 80 < found.hourly_dispersion < 400, "one burst of hundreds makes or breaks a week"


def test_the_figures_are_those_of_the_real_log(data_dir: object) -> None:
    from pathlib import Path

    from trainmaster.traces import load_trace

    real = describe(load_trace(Path(str(data_dir)) / "traces" / "philly_2017_82k.csv.gz"))
    made = long_run("philly-like")
    assert [size.share for size in made.sizes] == pytest.approx([size.share for size in real.sizes], abs=3e-4)
    for name in ("median_s", "mean_s", "p99_s"):
        assert getattr(made.duration, name) == pytest.approx(getattr(real.duration, name), rel=0.01)
    assert made.hourly_dispersion == pytest.approx(real.hourly_dispersion, rel=0.15)
    assert len(made.tenant_shares) == len(real.tenant_shares)
    assert made.tenant_shares[0].share == pytest.approx(real.tenant_shares[0].share, abs=0.1)
