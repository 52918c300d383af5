"""The published profiles, with the traces that were made by them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from profile_helpers import job

from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster, Node
from trainmaster.profiles import (
    ITERATIONS_PER_SECOND,
    RELATIVE,
    Profile,
    load_profile,
    speed_on,
    write_profile,
)
from trainmaster.traces import load_trace


@pytest.fixture(scope="module")
def chronus(data_dir: Path) -> Profile:
    return load_profile(data_dir / "profiles/chronus/model_info.json")


@pytest.fixture(scope="module")
def gavel(data_dir: Path) -> Profile:
    return load_profile(data_dir / "profiles/gavel_throughputs/simulation_throughputs.json.gz")


def test_chronus(chronus: Profile) -> None:
    assert (chronus.format, chronus.unit, len(chronus.models)) == ("chronus", RELATIVE, 5)
    assert chronus.speed(job("alexnet", 4), 4, "") == 0.325340860506144
    assert chronus.speed(job("alexnet", 4), 2, "V100") == 0.3972922047776267
    assert chronus.speed(job("inception_v3", 2), 2, "") == 1.0025492563926262
    assert chronus.speed(job("vgg16", 8), 3, "") == 0.2608913299672127
    assert chronus.speed(job("vgg16", 16), 2, "") == 1.0
    assert chronus.speed(job("vgg16", 16), 4, "") == 0.5724854767061701


def test_chronus_on_a_cluster(chronus: Profile) -> None:
    speed = speed_on(chronus, Cluster.homogeneous(nodes=4, gpus_per_node=8))
    spread = Allocation.of([Share(node, 1, 1000) for node in range(4)])
    assert speed(job("alexnet", 4), spread) == 0.325340860506144
    assert speed(job("bert", 4), spread) == 1.0


def test_chronus_knows_every_model_of_its_traces(chronus: Profile, data_dir: Path) -> None:
    jobs = load_trace(data_dir / "traces/philly_chronus_MIX1_31k.csv.gz").jobs
    assert len(jobs) > 30_000
    assert chronus.unknown(jobs) == {}


def test_gavel(gavel: Profile) -> None:
    assert (gavel.format, gavel.unit, gavel.reference) == ("gavel", ITERATIONS_PER_SECOND, "v100")
    assert gavel.gpu_types == ("k80", "p100", "v100")
    assert len(gavel.models) == 26
    lm = job("LM", 8, 5)
    assert gavel.speed(lm, 1, "v100") == 1.0
    assert (
        gavel.speed(lm, 8, "v100") == gavel.speed(lm, 2, "V100") == pytest.approx(73.120 / 698.773, rel=1e-4)
    )
    assert gavel.speed(lm, 1, "k80") == pytest.approx(76.863 / 698.773, rel=1e-4)
    assert gavel.speed(job("Recommendation (batch size 512)"), 1, "p100") == pytest.approx(
        48.882 / 23.318, rel=1e-4
    )
    assert not gavel.runs_on(job("ResNet-50", 2, 128), "k80")
    assert gavel.runs_on(job("ResNet-50", 2, 128), "v100")


def test_gavel_gives_the_durations_of_its_trace(gavel: Profile, data_dir: Path) -> None:
    trace = load_trace(data_dir / "traces/philly_gavel_msr_seed0.csv.gz")
    outcomes: Counter[str] = Counter()
    for each, truth in zip(trace.jobs, trace.truths, strict=True):
        duration = gavel.duration(each, "v100")
        if truth.duration is not None:
            assert duration == pytest.approx(truth.duration, rel=1e-12, abs=1)
        kind = ("in the trace", "not in the trace")[truth.duration is None]
        outcomes[f"{kind}, {'unknown' if duration is None else 'known'}"] += 1
        assert gavel.duration(each, "") == duration
    # What the trace leaves open: more than 8 GPUs, models measured on one GPU only, and two
    # jobs on 7 GPUs, which lie between the measured 4 and 8.
    assert outcomes == {
        "in the trace, known": 13_716,
        "not in the trace, unknown": 1_546,
        "not in the trace, known": 2,
    }
    assert gavel.unknown(trace.jobs, gavel.gpu_types) == {}


def test_gavel_finds_the_models_of_shockwave(gavel: Profile, data_dir: Path) -> None:
    jobs = load_trace(data_dir / "traces/shockwave_120_5_100.csv.gz").jobs
    assert gavel.unknown(jobs) == {}
    assert sum(gavel.duration(each, "v100") is not None for each in jobs) == 120


@pytest.mark.parametrize(
    "name",
    ["physical_cluster_throughputs.json.gz", "notebooks/figures/motivation/oracle_throughputs.json.gz"],
)
def test_other_files_of_gavel(data_dir: Path, tmp_path: Path, name: str) -> None:
    profile = load_profile(data_dir / "profiles/gavel_throughputs" / name)
    assert (len(profile.models), profile.reference) == (26, "v100")
    write_profile(profile, tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json") == profile


def test_a_cluster_of_three_types(gavel: Profile) -> None:
    speed = speed_on(gavel, Cluster(tuple(Node(name, 8, name) for name in ("V100", "P100", "K80"))))
    resnet = job("ResNet-50", 2, 32)
    together = [speed(resnet, Allocation.of([Share(node, 0b11, 2000)])) for node in range(3)]
    assert together == pytest.approx([1.0, 9.749 / 10.835, 2.353 / 10.835], rel=1e-3)
    mixed = Allocation.of([Share(0, 1, 1000), Share(2, 1, 1000)])
    assert speed(resnet, mixed) == pytest.approx(2.559 / 10.835, rel=1e-3)
