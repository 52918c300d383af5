"""What is committed: nothing huge, nothing that only makes sense on somebody's machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 1_000_000
MACHINE_PATH = re.compile(r"(?<![\w.~-])(?:/(?:work|root|home/\w+|Users/\w+)/|[A-Z]:\\Users\\)")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Files under version control that exist in the working tree."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip(f"not a git checkout: {listing.stderr.strip()}")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_large_file(tracked: list[Path]) -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_no_machine_path(tracked: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked
        for number, line in enumerate(path.read_bytes().decode("utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_machine_path"),
    [
        ("see /" + "work/main/x.py", True),
        ('open("/' + 'home/ada/log.csv")', True),
        ("/" + "root/.cache/x", True),
        ("C:\\" + "Users\\ada", True),
        ("https://example.org/work/main/", False),
        ("docs/work/page.md", False),
        ("the root / work / home", False),
        ("/usr/bin/env bash", False),
    ],
)
def test_machine_path_pattern(text: str, is_machine_path: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is is_machine_path
