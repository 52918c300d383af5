"""The package's front door: cheap to import, small, and stable."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import trainmaster

PUBLIC = [
    "Cluster",
    "Costs",
    "InputError",
    "Knob",
    "Options",
    "Policy",
    "Result",
    "Trace",
    "TrainmasterError",
    "__version__",
    "load_profile",
    "load_trace",
    "read_cluster",
    "sample",
    "simulate",
    "slice_trace",
    "synthesize",
    "testing",
    "write_csv",
]

HEAVY = ["kubernetes", "matplotlib", "pandas", "scipy", "torch"]

# Reports attempts, not only successes: the heavy packages needn't be installed for the test to bite.
WATCH = f"""
import json, runpy, sys

class Watch:
    seen = set()

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            self.seen.add(name)

sys.meta_path.insert(0, Watch())
try:
    %s
finally:
    print(json.dumps(sorted(Watch.seen)), file=sys.stderr)
"""


def heavy_imports(statement: str) -> list[str]:
    """Heavy packages that a fresh interpreter tries to import while it runs `statement`."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH % statement], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stderr.splitlines()[-1])
    assert isinstance(seen, list)
    return seen


def test_import_loads_nothing_heavy() -> None:
    assert heavy_imports("import trainmaster") == []


def test_help_loads_nothing_heavy() -> None:
    start = "runpy.run_module('trainmaster', run_name='__main__', alter_sys=True)"
    assert heavy_imports(f"sys.argv = ['trainmaster', '--help']; {start}") == []


@pytest.mark.parametrize("name", HEAVY)
def test_the_watch_sees_heavy_imports(name: str) -> None:
    assert heavy_imports(f"import importlib.util; importlib.util.find_spec({name!r})") == [name]


def test_public_names_are_pinned() -> None:
    assert trainmaster.__all__ == PUBLIC
    assert dir(trainmaster) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_there(name: str) -> None:
    assert getattr(trainmaster, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        trainmaster.nonsense  # noqa: B018
