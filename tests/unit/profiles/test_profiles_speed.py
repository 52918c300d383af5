"""How fast and how long: the questions that a profile answers."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_helpers import job

from trainmaster.model.errors import InputError
from trainmaster.model.units import SECOND
from trainmaster.profiles import ITERATIONS_PER_SECOND, RELATIVE, ModelKey, Profile, SpeedTable

ABSOLUTE = Profile(
    {
        ModelKey("LM", 80): {
            "V100": SpeedTable({1: {1: 8.0}, 4: {1: 20.0, 4: 10.0}, 8: {1: 40.0, 8: 10.0}}),
            "K80": SpeedTable({1: {1: 2.0}, 4: {1: 8.0, 4: 4.0}}),
        },
        ModelKey("Big"): {"V100": SpeedTable({1: {1: 1.0}}), "K80": SpeedTable({1: {1: 0.0}, 4: {1: 0.0}})},
        ModelKey("New"): {"K80": SpeedTable({1: {1: 3.0}})},
        ModelKey("Same"): {"": SpeedTable({2: {1: 10.0, 2: 7.0}})},
    },
    ITERATIONS_PER_SECOND,
    reference="V100",
)

COMPARED = Profile(
    {ModelKey("vgg16"): {"": SpeedTable({2: {1: 1.0, 2: 0.9}, 4: {1: 1.0, 2: 0.6}})}}, RELATIVE
)


@pytest.mark.parametrize(
    ("gpus", "nodes", "gpu_type", "speed"),
    [
        pytest.param(1, 1, "V100", 1.0, id="reference placement"),
        pytest.param(4, 1, "V100", 1.0, id="reference placement of a gang"),
        pytest.param(4, 4, "V100", 0.5, id="apart"),
        pytest.param(4, 2, "V100", 0.5, id="between together and apart"),
        pytest.param(1, 1, "K80", 0.25, id="slower type"),
        pytest.param(4, 1, "K80", 0.4, id="slower type, gang"),
        pytest.param(4, 4, "K80", 0.2, id="slower type, apart"),
        pytest.param(4, 1, "", 1.0, id="no type is the reference"),
        pytest.param(4, 1, "k80", 0.4, id="case of the type"),
        pytest.param(8, 2, "K80", 0.4, id="8 GPUs on a type measured up to 4: both as 4 on 1"),
        pytest.param(8, 8, "K80", 0.2, id="8 GPUs on a type measured up to 4, apart"),
        pytest.param(2.5, 1, "K80", 5.0 / 14.0, id="between sizes: (2+8)/2 to (8+20)/2"),
        pytest.param(0.5, 1, "K80", 0.25, id="a fraction of a GPU is as fast as one"),
        pytest.param(16, 2, "V100", 1.0, id="16 GPUs on 2 full nodes"),
    ],
)
def test_speed(gpus: float, nodes: int, gpu_type: str, speed: float) -> None:
    assert ABSOLUTE.speed(job("LM", gpus, 80), nodes, gpu_type) == pytest.approx(speed, rel=1e-12)


def test_relative_speeds_hold_on_any_type() -> None:
    assert COMPARED.gpu_types == ()
    for gpu_type in ("", "V100", "whatever"):
        assert COMPARED.speed(job("vgg16", 4), 2, gpu_type) == 0.6
    assert COMPARED.speed(job("vgg16", 1), 1, "") == 1.0


def test_a_model_for_any_type_in_a_profile_with_types() -> None:
    for gpu_type in ("V100", "K80"):
        assert ABSOLUTE.speed(job("Same", 2), 2, gpu_type) == 0.7


@pytest.mark.parametrize(
    ("model", "batch", "listed"),
    [
        ("LM", 80, True),
        ("LM (batch size 80)", None, True),
        ("LM (batch size 5)", 80, True),
        ("LM", 5, False),
        ("LM", None, False),
        ("LM (batch size 5)", None, False),
        ("Same", 64, True),
        ("Same (batch size 64)", None, True),
        ("lm", 80, False),
    ],
)
def test_which_models_match(model: str, batch: int | None, listed: bool) -> None:
    gang = job(model, 4, batch)
    assert (ABSOLUTE.speed(gang, 4, "V100") < 1.0) is listed
    assert ABSOLUTE.unknown([gang]) == ({} if listed else {str(ModelKey.of(gang.workload)): 1})  # type: ignore[arg-type]


def test_unlisted_models_run_at_reference_speed_and_are_counted() -> None:
    jobs = [job("X"), job(None), job("LM", 4, 80), job("X", 8), job("New"), job("Same", 2), job("A", 1, 3)]
    assert [ABSOLUTE.speed(each, 2, "K80") for each in jobs] == [1.0, 1.0, 0.2, 1.0, 1.0, 0.7, 1.0]
    counts = ABSOLUTE.unknown(jobs, ["K80"])
    assert list(counts.items()) == [("X", 2), ("", 1), ("A (batch size 3)", 1), ("New", 1)]
    assert ABSOLUTE.unknown(iter(jobs)) == counts


def test_a_type_that_the_profile_does_not_list() -> None:
    with pytest.raises(InputError, match=r"'V10' is not in the profile \(known: K80, V100\)"):
        ABSOLUTE.speed(job("LM", 4, 80), 1, "V10")
    with pytest.raises(InputError, match="'h800' is not in the profile"):
        ABSOLUTE.unknown([], ["h800"])


def test_a_model_that_does_not_run_on_a_type() -> None:
    assert ABSOLUTE.runs_on(job("Big"), "V100")
    assert not ABSOLUTE.runs_on(job("Big"), "K80")
    assert ABSOLUTE.runs_on(job("unheard of"), "K80")
    assert ABSOLUTE.duration(job("Big", iterations=5), "K80") is None
    with pytest.raises(InputError, match=r"job j7 \(Big\) does not run on 1 GPU of type K80.*gpu_type"):
        ABSOLUTE.speed(job("Big", id="j7"), 1, "K80")


def test_a_reference_that_does_not_run_compares_nothing() -> None:
    profile = dataclasses.replace(ABSOLUTE, reference="K80")
    assert profile.speed(job("Big"), 1, "V100") == 1.0
    assert profile.unknown([job("Big")], ["V100"]) == {"Big": 1}


def test_sizes_that_only_one_type_lists_are_not_compared() -> None:
    tables = {"a": SpeedTable({8: {1: 90.0}}), "b": SpeedTable({1: {1: 1.0}})}
    profile = Profile({ModelKey("M"): tables}, ITERATIONS_PER_SECOND, reference="a")
    assert profile.speed(job("M", 8), 1, "b") == 1.0
    assert profile.unknown([job("M", 8)], ["a", "b"]) == {"M": 1}
    more = {"a": SpeedTable({4: {1: 10.0}}), "b": SpeedTable({4: {1: 5.0}, 8: {1: 9.0}})}
    profile = Profile({ModelKey("M"): more}, ITERATIONS_PER_SECOND, reference="a")
    assert profile.speed(job("M", 8), 1, "b") == 0.5


@pytest.mark.parametrize(
    ("gpus", "nodes", "rate"),
    [(1, 1, 8.0), (4, 4, 10.0), (6, 1, 30.0), (0.5, 1, None), (9, 1, None)],
)
def test_throughput(gpus: float, nodes: int, rate: float | None) -> None:
    workload = job("LM", 1, 80).workload
    assert workload is not None
    assert ABSOLUTE.throughput(workload, gpus, nodes, "V100") == rate


def test_durations() -> None:
    assert ABSOLUTE.duration(job("LM", 4, 80, iterations=100), "V100") == 5 * SECOND
    assert ABSOLUTE.duration(job("LM", 4, 80, iterations=100), "") == 5 * SECOND
    assert ABSOLUTE.duration(job("LM", 4, 80, iterations=100), "K80") == 12_500_000_000
    assert ABSOLUTE.duration(job("LM", 1, 80, iterations=1e-12), "V100") == 1


@pytest.mark.parametrize(
    "unknown",
    [
        job(None),
        job("LM", 4, 80),
        job("LM", 4, 5, 100),
        job("X", 4, None, 100),
        job("LM", 16, 80, 100),
        job("LM", 0.5, 80, 100),
        job("New", 1, None, 100),
        job("LM", 1, 80, 1e300),
        job("LM", 1, 80, float("inf")),
        job("LM", 1, 80, float("nan")),
        job("LM", 1, 80, -1.0),
    ],
)
def test_unknown_durations(unknown: object) -> None:
    assert ABSOLUTE.duration(unknown, "V100") is None  # type: ignore[arg-type]


def test_relative_speeds_give_no_duration() -> None:
    assert COMPARED.duration(job("vgg16", 4, iterations=100), "") is None


@given(
    gpus=st.sampled_from([1, 2, 3, 4]),
    gpu_type=st.sampled_from(["V100", "K80"]),
    iterations=st.floats(1, 1e9),
)
def test_duration_and_speed_agree(gpus: int, gpu_type: str, iterations: float) -> None:
    each = job("LM", gpus, 80, iterations)
    here, reference = ABSOLUTE.duration(each, gpu_type), ABSOLUTE.duration(each, "")
    assert here is not None and reference is not None
    # Between sizes 1 and 8 the reference has a size (8) that the other type lacks; up to 4 they share all.
    assert reference / ABSOLUTE.speed(each, 1, gpu_type) == pytest.approx(here, rel=1e-9, abs=2)


def test_the_reference_is_the_type_that_is_fastest_most_often() -> None:
    assert dataclasses.replace(ABSOLUTE, reference="").reference == "V100"
    tie = {"b": SpeedTable({1: {1: 2.0}, 2: {1: 2.0}}), "a": SpeedTable({1: {1: 1.0}, 2: {1: 3.0}})}
    assert Profile({ModelKey("M"): tie}, ITERATIONS_PER_SECOND).reference == "a"
    assert COMPARED.reference == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "lists no models"),
        ({"unit": "steps"}, "'steps' is no unit of speed"),
        ({"reference": "V10"}, "column reference: GPU type 'V10' is not listed.*known: K80, V100"),
        ({"models": {ModelKey("M"): {"any": SpeedTable({1: {1: 1.0}})}}}, "'any' is no name of a GPU type"),
        ({"models": COMPARED.models}, "column reference: GPU type 'V100' is not listed.*leave it out"),
    ],
)
def test_profiles_that_make_no_sense(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataclasses.replace(ABSOLUTE, **change)  # type: ignore[arg-type]
