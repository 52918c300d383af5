"""Every built-in trace reader keeps the contract, with known answers for each published format."""

# ruff: noqa: RUF012 (class attributes are how a contract is filled in; nobody changes them)

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.model.units import HOUR, SECOND
from trainmaster.testing.readers import ReaderContract
from trainmaster.testing.trace_samples import SAMPLES
from trainmaster.traces import FORMATS, Truth, load_trace
from trainmaster.traces.readers.acme import AcmeReader
from trainmaster.traces.readers.gavel import GavelReader
from trainmaster.traces.readers.helios import HeliosReader
from trainmaster.traces.readers.itp import ItpReader
from trainmaster.traces.readers.normalized import NormalizedReader
from trainmaster.traces.readers.openb import OpenbReader
from trainmaster.traces.readers.pai import PaiReader
from trainmaster.traces.readers.philly import PhillyReader
from trainmaster.traces.readers.slurm import SlurmReader
from trainmaster.traces.readers.swf import SwfReader
from trainmaster.traces.readers.tiresias import ChronusReader, MuriReader, TiresiasReader

MINUTE = 60 * SECOND


class TestNormalized(ReaderContract):
    reader = NormalizedReader
    sample = SAMPLES["csv"]
    dropped = {"zero_gpus": 1}
    expected = [
        (
            Job("a", 0, 0, Request(460, preemptible=False), "speech", "bob", job_class="best"),
            Truth(1800 * SECOND, "failed"),
        ),
        (
            Job(
                "b",
                1,
                10_500_000_000,
                Request(8000, ("A100", "V100"), 1, 4000, 16000),
                "vision",
                "ann",
                2,
                2 * HOUR,
                Workload("resnet50", 256, 1000.0),
                (Deadline(9000 * SECOND),),
                job_class="strict",
            ),
            Truth(HOUR, "completed", 12 * SECOND),
        ),
        (
            Job(
                "c",
                2,
                20 * SECOND,
                Request(2000),
                "vision",
                "ann",
                workload=Workload("bert", None, 5000.0),
                deadlines=(Deadline(100 * SECOND, 10.0), Deadline(200 * SECOND, 2.5)),
                depends_on=("a", "b"),
                job_class="soft",
            ),
            Truth(None),
        ),
    ]


class TestPhilly(ReaderContract):
    reader = PhillyReader
    sample = SAMPLES["philly"]
    dropped = {"duration_missing": 1, "no_attempts": 1}
    expected = [
        (
            Job("application_1506638472019_14199", 0, 0, Request(8000), "ee9e8c", "ce2f4c"),
            Truth((74 + 3600) * SECOND, "completed", 30 * SECOND),
        ),
        (
            # 28 days, 22:48:21 later; from 00:30 to 03:30 in the night when clocks go back: 4 hours.
            Job("application_1506638472019_2", 1, 2_501_301 * SECOND, Request(2000), "11cb48", "a1b2c3"),
            Truth(4 * HOUR, "cancelled", 30 * MINUTE),
        ),
    ]


class TestHelios(ReaderContract):
    reader = HeliosReader
    sample = SAMPLES["helios"]
    dropped = {"duration_not_positive": 1, "zero_gpus": 1}
    expected = [
        (Job("70", 0, 0, Request(16000, nodes=2), "vc2", "u2"), Truth(24 * HOUR, "cancelled", 0)),
        (
            Job("71", 1, 61 * SECOND, Request(8000, nodes=1), "vc1", "u1"),
            Truth(HOUR, "completed", 30 * SECOND),
        ),
    ]


class TestAcme(ReaderContract):
    reader = AcmeReader
    sample = SAMPLES["acme"]
    expected = [
        (
            Job("5778432", 0, 0, Request(8000, nodes=1), "", "u5907", job_class="Other"),
            Truth(117 * SECOND, "failed", 32 * SECOND),
        ),
        (
            Job("5778469", 1, 336 * SECOND, Request(8000, nodes=1), "", "u5907", job_class="Eval"),
            Truth(2693 * SECOND, "completed", 13 * SECOND),
        ),
    ]


class TestPai(ReaderContract):
    reader = PaiReader
    sample = SAMPLES["pai"]
    dropped = {"duration_missing": 1, "task_missing": 1, "zero_gpus": 1}
    expected = [
        (Job("j2", 0, 900 * SECOND, Request(250, ("MISC",)), "", "u2"), Truth(1000 * SECOND, "failed", 0)),
        (
            Job("j1", 1, 1000 * SECOND, Request(2000, ("V100",)), "", "u1"),
            Truth(3990 * SECOND, "completed", 10 * SECOND),
        ),
    ]


class TestOpenb(ReaderContract):
    reader = OpenbReader
    sample = SAMPLES["openb"]
    dropped = {"duration_missing": 1, "zero_gpus": 1}
    expected = [
        (
            Job("openb-pod-0000", 0, 0, Request(1000), job_class="LS"),
            Truth(12_537_496 * SECOND, "running", 0),
        ),
        (
            Job("openb-pod-0001", 1, 427_061 * SECOND, Request(460, ("T4", "V100M32")), job_class="BE"),
            Truth((12_902_960 - 427_071) * SECOND, "completed", 10 * SECOND),
        ),
    ]


class TestItp(ReaderContract):
    reader = ItpReader
    sample = SAMPLES["itp"]
    expected = [
        (
            Job(
                "7b2d9ccc-6279-403c-e1a2-cfe7810d5c57",
                0,
                16_000 * SECOND,
                Request(1000),
                workload=Workload("vgg16", 256, 100.0),
                deadlines=(Deadline(17_000 * SECOND),),
            ),
            Truth(500 * SECOND),
        ),
        (
            Job(
                "6b2d9ccc-6279-403c-e1a2-cfe7810d5c57",
                1,
                16_566 * SECOND,
                Request(4000),
                workload=Workload("bert", 64, 40_285.0),
                deadlines=(Deadline(21_347 * SECOND),),
            ),
            Truth(3890 * SECOND),
        ),
    ]


class TestGavel(ReaderContract):
    reader = GavelReader
    sample = SAMPLES["gavel"]
    dropped = {"zero_gpus": 1}
    expected = [
        (
            Job("1", 0, 7_858_000_500_000_000, Request(2000), workload=Workload("LM", 80, 442_767.0)),
            Truth(None),
        ),
        (
            Job("0", 1, 7_858_722 * SECOND, Request(1000), workload=Workload("ResNet-50", 32, 557_447.0)),
            Truth(None),
        ),
    ]


class TestMuri(ReaderContract):
    reader = MuriReader
    sample = SAMPLES["muri"]
    expected = [
        (Job("0", 0, 0, Request(8000), workload=Workload("gpt2", 4, 10_956.0)), Truth(5095 * SECOND)),
        (
            Job("1", 1, 1_534_500_000_000, Request(32_000), workload=Workload("vgg16", 16, 1463.0)),
            Truth(281 * SECOND),
        ),
    ]


class TestChronus(ReaderContract):
    reader = ChronusReader
    sample = SAMPLES["chronus"]
    dropped = {"zero_gpus": 1}
    expected = [
        (
            Job(
                "26780",
                0,
                3893 * MINUTE,
                Request(1000),
                "vc_11cb48",
                workload=Workload("vgg16", None, 1136.0),
                job_class="best",
            ),
            Truth(72 * MINUTE),
        ),
        (
            Job(
                "0",
                1,
                8555 * MINUTE,
                Request(1000),
                "vc_6214e9",
                workload=Workload("vgg16", None, 5049.0),
                deadlines=(Deadline((8555 + 1105) * MINUTE, 10.0),),
                job_class="strict",
            ),
            Truth(747 * MINUTE),
        ),
        (
            Job(
                "26781",
                2,
                17_640 * MINUTE,
                Request(4000),
                "vc_6214e9",
                workload=Workload("resnet101", None, 9081.0),
                deadlines=tuple(
                    Deadline((17_640 + after) * MINUTE, value)
                    for after, value in ((60, 10.0), (80, 8.0), (130, 5.0), (190, 2.0))
                ),
                job_class="soft",
            ),
            Truth(30 * MINUTE),
        ),
    ]


class TestTiresias(ReaderContract):
    reader = TiresiasReader
    sample = SAMPLES["tiresias"]
    expected = [
        (Job("1", 0, 0, Request(1000), workload=Workload("vgg19", None, 606.0)), Truth(164 * SECOND)),
        (
            Job("2", 1, 30 * SECOND, Request(8000), workload=Workload("vgg11", None, 133.0)),
            Truth(147 * SECOND),
        ),
    ]


class TestSlurm(ReaderContract):
    reader = SlurmReader
    sample = SAMPLES["slurm"]
    dropped = {"duration_not_positive": 1, "zero_gpus": 1}
    expected = [
        (
            Job("4712_3", 0, 0, Request(16_000, nodes=2), "speech", "bob", job_class="gpu"),
            Truth(1830 * SECOND, "cancelled", 0),
        ),
        (
            Job(
                "4711",
                1,
                HOUR,
                Request(2000, ("a100",), 1),
                "vision",
                "ann",
                declared=24 * HOUR,
                job_class="gpu",
            ),
            Truth(2 * HOUR, "completed", 10 * MINUTE),
        ),
        (
            Job(
                "4715",
                2,
                2 * HOUR,
                Request(4000, nodes=1),
                "vision",
                "ann",
                declared=30 * MINUTE,
                job_class="gpu",
            ),
            Truth(600 * SECOND, "running", SECOND),
        ),
        (
            Job(
                "4716",
                3,
                2 * HOUR,
                Request(1000, nodes=1),
                "vision",
                "ann",
                declared=45 * MINUTE,
                job_class="gpu",
            ),
            Truth(SECOND, "failed", SECOND),
        ),
    ]


class TestSwf(ReaderContract):
    reader = SwfReader
    sample = SAMPLES["swf"]
    dropped = {"duration_missing": 1}
    expected = [
        (
            Job("1", 0, 100 * SECOND, Request(16_000), "7", "3", declared=2 * HOUR, job_class="2"),
            Truth(HOUR, "completed", 10 * SECOND),
        ),
        (
            Job("2", 1, 160 * SECOND, Request(8000), "7", "4", depends_on=("1",), job_class="2"),
            Truth(60 * SECOND, "cancelled"),
        ),
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_recognized_among_all(name: str, tmp_path: Path) -> None:
    assert load_trace(SAMPLES[name].write(tmp_path)).format == name


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(FORMATS)
