"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real traces and known results; the test skips where it is absent."""
    folder = os.environ.get("TRAINMASTER_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TRAINMASTER_DATA names no folder of real traces")
    return Path(folder)
