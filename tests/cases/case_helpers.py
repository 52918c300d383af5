"""Small cases, and how a test loads them."""

from __future__ import annotations

from pathlib import Path

from trainmaster.testing.scenario import load
from trainmaster.testing.scenario_model import Scene

TWO = """\
title: T
cluster: 2 x 1
jobs:
  a: {runs: 100}
  b: {runs: 100}
  c: {at: 10, runs: 100}
"""
"""Two GPUs, three jobs."""

ONE = """\
title: T
cluster: 1 x 1
jobs:
  a: {runs: 100}
  b: {at: 10, runs: 100}
"""
"""One GPU, two jobs."""


def scene_of(text: str, folder: Path) -> Scene:
    """The first part of a case."""
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    part = load(path).parts[0]
    assert isinstance(part, Scene)
    return part
