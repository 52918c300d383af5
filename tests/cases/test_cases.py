"""The case files of this folder: scenarios with the right answer, each under every policy that claims it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainmaster.testing.scenario import Attempt, Case, attempts, case_files, load, run_attempt

FOLDER = Path(__file__).parent


def runs() -> list[Any]:
    """(case, attempt) of all files."""
    found = []
    for path in case_files([FOLDER]):
        case = load(path)
        for attempt in attempts(case):
            part = attempt.part if len(case.parts) > 1 else ""
            words = filter(None, map(str, (case.label, part, attempt.policy, attempt.placement)))
            found.append(pytest.param(case, attempt, id="-".join(words)))
    return found


@pytest.mark.parametrize(("case", "attempt"), runs())
def test_case(case: Case, attempt: Attempt) -> None:
    made = run_attempt(case, attempt)
    assert not made.differences, "\n".join(made.differences)
    if made.needs:
        held = "; all else holds" if made.runs else ""
        pytest.skip(f"not yet: needs {', '.join(made.needs)}{held}")
