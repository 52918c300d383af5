"""Result folders for the report's tests; `folder` is shared and must not be changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from report_folder import write_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four policies on four nodes."""
    return write_folder(tmp_path_factory.mktemp("results") / "compared")


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies on three capacities with two seeds."""
    target = tmp_path_factory.mktemp("results") / "sweep"
    return write_folder(target, policies=["fifo", "srtf"], nodes=(3, 4, 6), seeds=(0, 1), count=150, days=2)


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Callable[[], Path]:
    """Makes copies of `folder` that a test may damage."""

    def copy() -> Path:
        return Path(shutil.copytree(folder, tmp_path / "copied", dirs_exist_ok=True))

    return copy
