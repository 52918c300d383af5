"""The case files of this folder: scenarios with the right answer, each under every policy that claims it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster.testing.scenario import Attempt, Case, attempts, case_files, load, run_attempt

FOLDER = Path(__file__).parent


def runs() -> Iterator[Any]:
    for path in case_files([FOLDER]):
        case = load(path)
        for attempt in attempts(case):
            words = (
                case.label,
                attempt.part if len(case.parts) > 1 else "",
                attempt.policy,
                attempt.placement,
            )
            yield pytest.param(case, attempt, id="-".join(filter(None, map(str, words))))


@pytest.mark.parametrize(("case", "attempt"), runs())
def test_case(case: Case, attempt: Attempt) -> None:
    made = run_attempt(case, attempt)
    assert not made.differences, "\n".join(made.differences)
    if made.needs:
        held = "; all else holds" if made.runs else ""
        pytest.skip(f"not yet: needs {', '.join(made.needs)}{held}")
