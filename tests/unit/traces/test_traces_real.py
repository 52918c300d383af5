"""The real traces load, with the number of rows that their source states. Skips where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.testing.readers import assert_counts_add_up
from trainmaster.traces import load_trace

ROWS = {
    "alibaba_openb_2023_8k_pods": (8152, {"zero_gpus": 1088, "duration_missing": 861}),
    "demo_itp_cluster02_1week": (579, {}),
    "demo_philly_1day": (420, {}),
    "demo_philly_1week": (3781, {}),
    "elasticflow_elasticVpollux_e": (195, {}),
    "elasticflow_philly_103959": (876, {}),
    "helios_venus_2020_before_sept": (99_707, {}),
    "itp_2021_195job_testbed": (195, {}),
    "itp_2021_clusters_open": (27_803, {}),
    "itp_2021_deadlines_open": (27_803, {}),
    "philly_2017_82k": (82_247, {}),
    "philly_2017_attempts_152k": (151_816, {}),
    "philly_chronus_MIX1_31k": (30_940, {"zero_gpus": 184}),
    "philly_chronus_MIX2_31k": (30_940, {"zero_gpus": 194}),
    "philly_chronus_SLO_31k": (30_940, {"zero_gpus": 205}),
    "philly_gavel_msr_seed0": (15_264, {}),
    "philly_muri_testbed_400": (400, {}),
    "philly_muri_trace1": (1494, {}),
    "philly_muri_trace2": (5755, {}),
    "philly_muri_trace3": (992, {}),
    "philly_muri_trace4": (2638, {}),
    "pollux_2x_w1": (320, {}),
    "pollux_w1": (160, {}),
    "rubick_base": (406, {}),
    "rubick_bp": (406, {}),
    "rubick_mt": (406, {}),
    "shockwave_120_5_100": (120, {}),
    "shockwave_220_5_100": (220, {}),
    "shockwave_460_5_100": (460, {}),
    "shockwave_900_5_100": (900, {}),
    "tiresias_60job": (60, {}),
    "titan_FM-1-roberta-base": (120, {}),
    "titan_FM-1-roberta-large": (60, {}),
    "titan_FM-1-vit-large": (160, {}),
    "titan_FM-1-vit": (320, {}),
    "titan_FM-1.5-roberta-base": (180, {}),
    "titan_FM-1.5-roberta-large": (90, {}),
    "titan_FM-1.5-vit-large": (240, {}),
    "titan_FM-1.5-vit": (480, {}),
    "titan_FM-2-roberta-base": (240, {}),
    "titan_FM-2-roberta-large": (120, {}),
    "titan_FM-2-vit-large": (320, {}),
    "titan_FM-2-vit": (640, {}),
}


def test_no_trace_is_forgotten(data_dir: Path) -> None:
    assert {path.name.removesuffix(".csv.gz") for path in (data_dir / "traces").iterdir()} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_real_trace(data_dir: Path, name: str) -> None:
    rows, dropped = ROWS[name]
    trace = load_trace(data_dir / "traces" / f"{name}.csv.gz")
    assert (trace.format, trace.problems.rows) == ("csv", rows)
    assert trace.problems.dropped == dropped
    assert trace.problems.noted == {}
    assert_counts_add_up(trace)


def test_known_figures(data_dir: Path) -> None:
    trace = load_trace(data_dir / "traces" / "philly_2017_82k.csv.gz")
    assert len(trace.tenants) == 15
    assert trace.span_s / 86_400 == pytest.approx(109, abs=1)
    assert trace.gpu_hours * 3600 / trace.span_s == pytest.approx(374, rel=0.02), "mean demand in GPUs"


def test_real_swf(data_dir: Path) -> None:
    trace = load_trace(data_dir / "raw_formats" / "swf_tests" / "data" / "workload.swf")
    assert (trace.format, len(trace), trace.dropped) == ("swf", 25, {})
    assert trace.jobs[0].id == "184"
    assert (trace.jobs[0].submit, trace.truths[0].duration, trace.jobs[0].request.gpus) == (
        561_553 * 10**9,
        61 * 10**9,
        16_000,
    )
