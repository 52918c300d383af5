"""Files at fault: one line that names file and key, never a traceback."""

from __future__ import annotations

import copy
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.profiles import Profile, load_profile

NATIVE = {
    "trainmaster_profile": 1,
    "unit": "relative",
    "reference": "a",
    "models": [{"model": "M", "batch_size": 4, "speeds": {"a": {"4": {"1": 1.0, "2": 0.5}}}}],
}
CHRONUS = {"alexnet": {"2": {"1": 1.0, "2": 0.75}, "4": {"1": 1.0, "4": 0.33}}}
GAVEL = {
    "v100": {"('LM (batch size 5)', 1)": {"null": 10.0, "('A3C', 1)": [1.0, 2.0]}},
    "v100_unconsolidated": {"('LM (batch size 5)', 4)": {"null": 3.0}},
}


def fault(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_profile(path)
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The document with another value there; ... takes the key away."""
    document = copy.deepcopy(document)
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


SPEEDS = ("models", 0, "speeds")


@pytest.mark.parametrize(
    ("path", "value", "key", "message"),
    [
        (("trainmaster_profile",), 2, "trainmaster_profile", "this Trainmaster reads version 1 only"),
        (("trainmaster_profile",), True, "trainmaster_profile", "this Trainmaster reads version 1 only"),
        (("unit",), ..., None, "key 'unit' is missing"),
        (("unit",), "steps", "unit", "give iterations_per_second or relative"),
        (("unit",), 3, "unit", "3 where a text is expected"),
        (("models",), ..., None, "key 'models' is missing"),
        (("models",), [], "models", "is empty"),
        (("models",), {"M": 1}, "models", "keys with values where a list is expected"),
        (("modles",), [], "modles", "did you mean 'models'"),
        (("reference",), "b", "reference", "GPU type 'b' is not listed"),
        (("reference",), "", "reference", "is empty"),
        (("reference",), None, "reference", "nothing where a text is expected"),
        (("models", 0), "M", "models[0]", "'M' where keys with values are expected"),
        (("models", 0, "model"), ..., "models[0]", "key 'model' is missing"),
        (("models", 0, "model"), "a\nb", "models[0].model", "can't be shown"),
        (("models", 0, "model"), False, "models[0].model", "true or false where a text is expected"),
        (("models", 0, "batch_size"), 0, "models[0].batch_size", "0 is not a whole number from 1"),
        (("models", 0, "batch_size"), 4.5, "models[0].batch_size", "4.5 is not a whole number"),
        (("models", 0, "batch_size"), True, "models[0].batch_size", "true or false is not a whole number"),
        (("models", 0, "batchsize"), 4, "models[0].batchsize", "did you mean 'batch_size'"),
        (SPEEDS, ..., "models[0]", "key 'speeds' is missing"),
        (SPEEDS, {}, "models[0].speeds", "is empty"),
        ((*SPEEDS, ""), {"1": {"1": 1}}, "models[0].speeds.''", "is empty or has characters"),
        ((*SPEEDS, "a\nb"), {"1": {"1": 1}}, "models[0].speeds.'a\\nb'", "can't be shown"),
        ((*SPEEDS, "a", "4"), {}, "models[0].speeds.a.4", "is empty"),
        ((*SPEEDS, "a", "4"), [1], "models[0].speeds.a.4", "a list where keys"),
        ((*SPEEDS, "a", "four"), {"1": 1}, "models[0].speeds.a.four", "'four' is not a whole number"),
        ((*SPEEDS, "a", "0"), {"1": 1}, "models[0].speeds.a.0", "'0' is not a whole"),
        ((*SPEEDS, "a", "04"), {"1": 1}, "models[0].speeds.a.04", "4 stands twice"),
        ((*SPEEDS, "a", "9" * 30), {"1": 1}, f"models[0].speeds.a.{'9' * 30}", "is not a whole number"),
        ((*SPEEDS, "a", "4", "5"), 1.0, "models[0].speeds.a.4.5", "4 GPUs can't be on 5 nodes"),
        ((*SPEEDS, "a", "4", "2"), "1.0", "models[0].speeds.a.4.2", "'1.0' is not a speed"),
        ((*SPEEDS, "a", "4", "2"), -1, "models[0].speeds.a.4.2", "-1 is not a speed"),
        ((*SPEEDS, "a", "4", "2"), 1e-12, "models[0].speeds.a.4.2", "1e-12 is not a speed"),
        ((*SPEEDS, "a", "4", "2"), float("nan"), "models[0].speeds.a.4.2", "nan is not a speed"),
        ((*SPEEDS, "a", "4", "2"), float("inf"), "models[0].speeds.a.4.2", "inf is not a speed"),
        ((*SPEEDS, "a", "4", "2"), 10**400, "models[0].speeds.a.4.2", "so large a number is not a speed"),
        ((*SPEEDS, "a", "4", "2"), None, "models[0].speeds.a.4.2", "nothing is not a speed"),
        ((*SPEEDS, "a", "4", "2"), [1], "models[0].speeds.a.4.2", "a list is not a speed"),
    ],
)
def test_native(tmp_path: Path, path: tuple[Any, ...], value: Any, key: str | None, message: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(changed(NATIVE, path, value)))
    error = fault(file)
    assert error.column == key
    assert message in str(error)


def test_a_model_that_stands_twice(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    twin = {"model": "M (batch size 4)", "speeds": {"a": {"1": {"1": 1}}}}
    file.write_text(json.dumps({**NATIVE, "models": [*NATIVE["models"], twin]}))  # type: ignore[misc]
    error = fault(file)
    assert (error.column, error.message) == ("models[1]", "M (batch size 4) stands twice")


@pytest.mark.parametrize(
    ("document", "path", "value", "key", "message"),
    [
        (CHRONUS, ("alexnet", "4", "2"), "x", "alexnet.4.2", "'x' is not a speed"),
        (CHRONUS, ("alexnet", "4", "8"), 1, "alexnet.4.8", "4 GPUs can't be on 8 nodes"),
        (CHRONUS, ("alexnet", "many"), {"1": 1}, "alexnet.many", "is not a whole number"),
        (CHRONUS, ("vgg16",), 1.0, "vgg16", "1.0 where keys with values are expected"),
        (CHRONUS, ("vgg16",), {}, "vgg16", "is empty"),
        (GAVEL, ("v100", "('A3C', 0)"), {"null": 1.0}, "v100.('A3C', 0)", "'0' is not a whole number"),
        (GAVEL, ("v100", "('A3C', 1)"), {"null": "x"}, "v100.('A3C', 1).null", "'x' is not a speed"),
        (GAVEL, ("v100", "('A3C', 1)"), {}, "v100.('A3C', 1)", "is empty"),
        (GAVEL, ("v100", "('A3C', 1)"), [], "v100.('A3C', 1)", "a list where keys with values"),
        (GAVEL, ("v100", "LM (batch size 5)"), {"null": 1}, "v100.LM (batch size 5)", "stands twice"),
        (GAVEL, ("_unconsolidated",), {"A": {"null": 1}}, "_unconsolidated", "names no GPU type"),
        (GAVEL, ("k80",), 5, "k80", "5 where keys with values are expected"),
        (GAVEL, ("any",), {"A": {"null": 1}}, None, "'any' is no name of a GPU type"),
    ],
)
def test_published_formats(
    tmp_path: Path, document: dict[str, Any], path: tuple[Any, ...], value: Any, key: str | None, message: str
) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(changed(document, path, value)))
    error = fault(file)
    assert error.column == key
    assert message in str(error)


def test_a_number_of_thousands_of_digits(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(changed(CHRONUS, ("alexnet", "9" * 5_000), {"1": 1.0})))
    error = fault(file)
    assert "is not a whole number" in error.message
    assert len(str(error)) < 300


def test_a_gavel_file_with_pairs_only(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"v100": {"A": {"B": [1.0, 2.0]}}}))
    assert "lists no models" in str(fault(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty (give a profile)"),
        (" \n", "is empty (give a profile)"),
        ("{", "row 1: is not JSON: Expecting property name"),
        ('{"a": 1,\n "b": }', "row 2: is not JSON: Expecting value"),
        ('{"a": {"b": 1, "b": 2}}', "key 'b' stands twice (keep one)"),
        ("[" * 100_000, "is not JSON that can be read"),
        ('{"a": ' + "9" * 5_000 + "}", "is not JSON that can be read"),
        ("[1, 2]", "is of no known profile format (give a file with trainmaster_profile: 1 or model_info"),
        ("null", "is of no known profile format"),
        ('{"a": {"1": 5}}', "is of no known profile format"),
        ("{}", "is of no known profile format"),
        ('{"a": {"b": {"c": 1}}}', "is of no known profile format"),
        ("job_id,submit_s\na,0\n", "is of no known profile format"),
        ("a: [", "row 1: is not YAML: "),
        ("a: 1\nb: 2\na: 3\n", "row 1: is not YAML: key 'a' stands twice"),
        ("a: !!python/object:os.system x", "row 1: is not YAML: could not determine a constructor"),
        ("a: !!int x", "is not YAML: invalid literal"),
        ("a: !!bool x", "is not YAML: 'x'"),
        ("a: 2024-13-45", "is not YAML: month must be in 1..12"),
        ("? [a]\n: 1", "row 1: is not YAML: found unhashable key"),
        ("a: \x00", "is not YAML: unacceptable character"),
        ("&a [*a]", "is of no known profile format"),
        ("trainmaster_profile: 1\n2024-01-01: 1\n", "datetime.date(2024, 1, 1) is no key (put it in quotes)"),
        ("trainmaster_profile: 1\n'1': 1\n0x1: 1\n", "'1' stands twice (keep one)"),
        ("trainmaster_profile: 1\ntrue: 1\n", "True is no key"),
        (
            "trainmaster_profile: 1\nunit: no\nmodels: [{model: m, speeds: {any: {1: {1: 1}}}}]",
            "put it in quotes",
        ),
    ],
)
def test_texts(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "p"
    file.write_text(text)
    assert message in str(fault(file))


def test_a_folder(tmp_path: Path) -> None:
    error = fault(tmp_path)
    assert error.message == "is a folder, a profile is one file"
    assert error.mend == (
        "give a file with trainmaster_profile: 1 "
        "or model_info.json of Chronus or a throughputs .json of Gavel"
    )


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in str(fault(tmp_path / "missing.json"))
    file = tmp_path / "p.gz"
    packed = gzip.compress(json.dumps(NATIVE).encode())
    for damaged in (packed[:-9], packed[:20], b"\x1f\x8b" + b"x" * 40, packed[:30] + b"!!" + packed[32:]):
        file.write_bytes(damaged)
        assert "gzip data are cut off or damaged" in str(fault(file))
    file.write_bytes(b'{"a\xff": 1}')
    assert "is not UTF-8 text" in str(fault(file))


FUZZ = settings(deadline=None, max_examples=60)
STARTS = [
    json.dumps(NATIVE),
    json.dumps(CHRONUS),
    json.dumps(GAVEL),
    "trainmaster_profile: 1\nunit: relative\n",
]


def loads_or_says_why(path: Path) -> None:
    try:
        profile = load_profile(path)
    except InputError as error:
        assert error.file == str(path)
        assert str(error).isprintable()
    else:
        assert isinstance(profile, Profile)
        assert all(table.sizes for tables in profile.models.values() for table in tables.values())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "p.json"


@given(data=st.binary(max_size=100) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
@FUZZ
def test_random_bytes(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    loads_or_says_why(file)


@given(
    start=st.sampled_from(STARTS),
    at=st.floats(0, 1),
    cut=st.integers(0, 12),
    put=st.text(st.sampled_from('{}[]:,"& *!?|>-#\n1.5eNaN\\u0a'), max_size=8),
)
@FUZZ
def test_damaged_texts(file: Path, start: str, at: float, cut: int, put: str) -> None:
    place = int(at * len(start))
    damaged = start[:place] + put + start[place + cut :]
    for name in (file, file.with_suffix(".yaml")):
        name.write_text(damaged)
        loads_or_says_why(name)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["1", "2", "null", "a", "model", "speeds", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(start=st.sampled_from(STARTS[:3]), value=values, seed=st.integers(0, 2**32))
@FUZZ
def test_any_value_anywhere(file: Path, start: str, value: Any, seed: int) -> None:
    document = json.loads(start)
    chance = random.Random(seed)
    inner: Any = document
    while True:
        key = chance.choice(list(inner) if isinstance(inner, dict) else list(range(len(inner))))
        if not isinstance(inner[key], dict | list) or not inner[key] or chance.random() < 0.3:
            break
        inner = inner[key]
    inner[key] = value
    file.write_text(json.dumps(document))
    loads_or_says_why(file)
