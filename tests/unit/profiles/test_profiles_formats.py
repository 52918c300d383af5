"""Reading each format and writing our own."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.profiles import (
    FORMATS,
    ITERATIONS_PER_SECOND,
    RELATIVE,
    ModelKey,
    Profile,
    SpeedTable,
    load_profile,
    write_profile,
)

NATIVE = {
    "trainmaster_profile": 1,
    "unit": "iterations_per_second",
    "reference": "k80",
    "name": "two",
    "source": "by hand",
    "models": [
        {
            "model": "LM",
            "batch_size": 5,
            "speeds": {"v100": {"4": {"1": 20, "2": 9.5}}, "k80": {"4": {"1": 0}}},
        },
        {"model": "vgg16", "speeds": {"any": {"2": {"1": 1.5}}}},
    ],
}
NATIVE_PROFILE = Profile(
    {
        ModelKey("LM", 5): {"v100": SpeedTable({4: {1: 20.0, 2: 9.5}}), "k80": SpeedTable({4: {1: 0.0}})},
        ModelKey("vgg16"): {"": SpeedTable({2: {1: 1.5}})},
    },
    ITERATIONS_PER_SECOND,
    "k80",
    "two",
    "by hand",
)
CHRONUS = {
    "alexnet": {"2": {"1": 1.0, "2": 0.75}, "4": {"1": 1.0, "4": 0.33, "2": 0.4}},
    "vgg16": {"8": {"1": 1}},
}
GAVEL = {
    "k80": {
        "('LM (batch size 5)', 1)": {"('LM (batch size 5)', 1)": [1.0, 1.0], "null": 2.5},
        "('LM (batch size 5)', 4)": {"null": 8.0},
        "('A3C', 1)": {"null": 0.0},
        "('LM (batch size 10)', 1)": {"('A3C', 1)": [0.0, 0.0]},
    },
    "v100": {"('LM (batch size 5)', 1)": {"null": 10}, "('A3C', 1)": {"null": 7.0}},
    "k80_unconsolidated": {
        "('LM (batch size 5)', 1)": {"null": 2.4},
        "('LM (batch size 5)', 4)": {"null": 3.0},
    },
}


def saved(folder: Path, document: Any, name: str = "profile.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_native(tmp_path: Path) -> None:
    profile = load_profile(saved(tmp_path, NATIVE))
    assert profile == NATIVE_PROFILE
    assert (profile.format, profile.path) == ("trainmaster", str(tmp_path / "profile.json"))


def test_native_as_yaml(tmp_path: Path) -> None:
    text = """
# measured by hand
trainmaster_profile: 1
unit: iterations_per_second
reference: k80
name: two
source: by hand
models:
  - model: LM
    batch_size: 5
    speeds:
      v100: {4: {1: 20, 2: 9.5}}
      k80: {4: {1: 0}}
  - model: vgg16
    speeds: {any: {2: {1: 1.5}}}
"""
    assert load_profile(saved(tmp_path, text, "profile.yaml")) == NATIVE_PROFILE
    assert load_profile(saved(tmp_path, text, "profile")) == NATIVE_PROFILE
    assert load_profile(saved(tmp_path, "\ufeff" + text, "bom.yml")) == NATIVE_PROFILE
    flow = json.dumps(NATIVE).replace('"trainmaster_profile"', "trainmaster_profile")
    assert load_profile(saved(tmp_path, flow, "flow.yaml")) == NATIVE_PROFILE


def test_native_without_what_is_optional(tmp_path: Path) -> None:
    models = [{"model": "ResNet-50 (batch size 32)", "speeds": {"t4": {1: {1: 2}}, "a100": {1: {1: 9}}}}]
    document = {"trainmaster_profile": 1, "unit": "relative", "models": models}
    profile = load_profile(saved(tmp_path, document))
    assert profile.reference == "a100"
    assert list(profile.models) == [ModelKey("ResNet-50", 32)]
    assert (profile.name, profile.source, profile.unit) == ("", "", RELATIVE)


def test_chronus(tmp_path: Path) -> None:
    profile = load_profile(saved(tmp_path, CHRONUS, "model_info.json"))
    assert profile.models == {
        ModelKey("alexnet"): {"": SpeedTable({2: {1: 1.0, 2: 0.75}, 4: {1: 1.0, 2: 0.4, 4: 0.33}})},
        ModelKey("vgg16"): {"": SpeedTable({8: {1: 1.0}})},
    }
    assert (profile.format, profile.unit, profile.reference) == ("chronus", RELATIVE, "")


def test_gavel(tmp_path: Path) -> None:
    profile = load_profile(saved(tmp_path, GAVEL))
    assert profile.models == {
        ModelKey("LM", 5): {
            "k80": SpeedTable({1: {1: 2.5}, 4: {1: 8.0, 4: 3.0}}),
            "v100": SpeedTable({1: {1: 10.0}}),
        },
        ModelKey("A3C"): {"k80": SpeedTable({1: {1: 0.0}}), "v100": SpeedTable({1: {1: 7.0}})},
    }
    assert (profile.format, profile.unit, profile.reference) == ("gavel", ITERATIONS_PER_SECOND, "v100")


def test_gavel_before_it_had_scale_factors(tmp_path: Path) -> None:
    document = {"p100": {"LM (batch size 5)": {"LM (batch size 5)": [1.0, 1.0], "null": 9.0}}}
    profile = load_profile(saved(tmp_path, document))
    assert profile.models == {ModelKey("LM", 5): {"p100": SpeedTable({1: {1: 9.0}})}}
    assert profile.reference == "p100"


def test_gavel_compares_with_the_v100_even_where_another_type_is_faster(tmp_path: Path) -> None:
    document = {"v100": {"A3C": {"null": 7.0}}, "a100": {"A3C": {"null": 14.0}}}
    assert load_profile(saved(tmp_path, document)).reference == "v100"


def test_byte_order_mark(tmp_path: Path) -> None:
    assert load_profile(saved(tmp_path, "\ufeff" + json.dumps(NATIVE))) == NATIVE_PROFILE


@pytest.mark.parametrize("document", [NATIVE, CHRONUS, GAVEL])
def test_packed(tmp_path: Path, document: dict[str, Any]) -> None:
    plain = saved(tmp_path, document)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_profile(packed) == load_profile(str(plain))


def test_formats() -> None:
    assert FORMATS == ("trainmaster", "chronus", "gavel")


@pytest.mark.parametrize("name", ["p.json", "p.yaml", "p.yml", "p.json.gz", "p.yaml.gz"])
@pytest.mark.parametrize("document", [NATIVE, CHRONUS, GAVEL])
def test_written_and_read_again(tmp_path: Path, document: dict[str, Any], name: str) -> None:
    profile = load_profile(saved(tmp_path, document, "in.json"))
    write_profile(profile, tmp_path / name)
    assert load_profile(tmp_path / name) == profile
    first = (tmp_path / name).read_bytes()
    assert (first[:2] == b"\x1f\x8b") is name.endswith(".gz")
    # No time stamp inside.
    assert not name.endswith(".gz") or first[4:8] == b"\0\0\0\0"
    write_profile(load_profile(tmp_path / name), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.json", name])


def test_what_is_written(tmp_path: Path) -> None:
    write_profile(NATIVE_PROFILE, tmp_path / "p.yaml")
    assert (tmp_path / "p.yaml").read_text() == (
        "trainmaster_profile: 1\nunit: iterations_per_second\nname: two\nsource: by hand\nreference: k80\n"
        "models:\n"
        "- model: LM\n  batch_size: 5\n  speeds:\n"
        "    k80:\n      4:\n        1: 0.0\n"
        "    v100:\n      4:\n        1: 20.0\n        2: 9.5\n"
        "- model: vgg16\n  speeds:\n    any:\n      2:\n        1: 1.5\n"
    )


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.isprintable)
speeds = st.just(0.0) | st.floats(1e-9, 1e9)
table = st.integers(1, 9).flatmap(
    lambda gpus: st.dictionaries(st.integers(1, gpus), speeds, min_size=1, max_size=3).map(
        lambda by_nodes: SpeedTable({gpus: by_nodes})
    )
)
profiles = st.builds(
    Profile,
    st.dictionaries(
        st.builds(ModelKey, names.map(lambda name: name.replace("(", "x")), st.none() | st.integers(1, 999)),
        st.dictionaries(
            st.just("") | names.filter(lambda name: name != "any"), table, min_size=1, max_size=3
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([RELATIVE, ITERATIONS_PER_SECOND]),
    name=st.just("") | names,
)


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@given(profile=profiles)
@settings(deadline=None, max_examples=30)
def test_any_profile_survives_writing(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, profile: Profile
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    write_profile(profile, path)
    assert load_profile(path) == profile


def test_the_page_shows_a_profile_that_loads(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "profiles.md"
    example = re.search(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    profile = load_profile(saved(tmp_path, example[1], "example.yaml"))
    assert list(profile.models) == [ModelKey("ResNet-50", 32), ModelKey("vgg16")]
    assert profile.gpu_types == ("k80", "v100")


@pytest.mark.parametrize("name", ["p", "p.csv", "p.gz", "p.json.zip"])
def test_names_that_tell_no_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is the name of no profile \(end it in"):
        write_profile(NATIVE_PROFILE, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_profile(NATIVE_PROFILE, tmp_path / "nowhere" / "p.json")
    (tmp_path / "p.json").mkdir()
    with pytest.raises(InputError, match=r"cannot be written: Is a directory"):
        write_profile(NATIVE_PROFILE, tmp_path / "p.json")
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]
