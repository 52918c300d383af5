"""Scenarios with the right answer, as files: `trainmaster case` and pytest run them from here.

>>> from pathlib import Path; import tempfile
>>> text = '''
... title: A gang is bound whole or not at all
... cluster: 2 x 1
... jobs:
...   single: {runs: 100}
...   gang: {at: 10, pods: 2 x 1, runs: 200}
... expect:
...   - {at: 10, running: single, pending: gang, gpus: {gang: 0}}
... finally: {start: {gang: 100}, evictions: 0}
... '''
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "gang.yaml"
...     _ = path.write_text(text)
...     result = run_case(load(path))
>>> result.status, sorted(run.policy for run in result.runs)[:3]
('passed', ['drf', 'fifo', 'fifo(backfill=conservative)'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trainmaster.model.errors import InputError, TrainmasterError
from trainmaster.policies.registry import Specification
from trainmaster.testing.scenario_expect import Checker
from trainmaster.testing.scenario_features import BY_POLICY, EVERY, claims, missing
from trainmaster.testing.scenario_files import check_process, check_reader
from trainmaster.testing.scenario_load import load
from trainmaster.testing.scenario_model import AnyScene, Case, ProcessScene, ReaderScene, Scene
from trainmaster.testing.scenario_play import Play, make_policy

__all__ = [
    "FAILED",
    "NOT_YET",
    "PASSED",
    "Attempt",
    "Case",
    "CaseResult",
    "attempts",
    "case_files",
    "check_scene",
    "load",
    "run_attempt",
    "run_case",
    "summary",
]

PASSED, FAILED, NOT_YET = "passed", "failed", "not yet"


@dataclass(frozen=True)
class Attempt:
    """One part of a case under one policy and placement, to be run or already run.

    Args:
        part: from 1.
        policy, placement: empty for cases about files, or when nothing can be run.
        needs: features that are missing.
        runs: whether it can be run all the same (only some expectations can't be checked).
        differences: from what is expected, one line each.
    """

    part: int
    policy: str = ""
    placement: str = ""
    needs: tuple[str, ...] = ()
    runs: bool = True
    differences: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """passed, failed or not yet."""
        return FAILED if self.differences else NOT_YET if self.needs else PASSED

    @property
    def name(self) -> str:
        """Part, policy and placement, as far as they are told."""
        words = (f"part {self.part}" if self.part > 1 else "", self.policy, self.placement)
        return ", ".join(filter(None, words))


@dataclass(frozen=True)
class CaseResult:
    """What came of a case."""

    case: Case
    runs: tuple[Attempt, ...]

    @property
    def status(self) -> str:
        """failed if an attempt failed; else not yet if one can't be made in full; else passed."""
        found = {run.status for run in self.runs}
        return next(status for status in (FAILED, NOT_YET, PASSED) if status in found)

    @property
    def needs(self) -> list[str]:
        """Features that are missing."""
        return sorted({feature for run in self.runs for feature in run.needs})

    @property
    def tried(self) -> int:
        """Attempts that were made."""
        return sum(run.runs for run in self.runs)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "number": self.case.number or None,
            "title": self.case.title,
            "file": str(self.case.path),
            "status": self.status,
            "needs": self.needs,
            "runs": [
                {
                    "part": run.part,
                    "policy": run.policy or None,
                    "placement": run.placement or None,
                    "status": run.status,
                    "needs": list(run.needs),
                    "differences": list(run.differences),
                }
                for run in self.runs
            ],
        }


def case_files(paths: Iterable[Path]) -> list[Path]:
    """The case files named, and those in the folders named (`*.yaml`, in order of their names).

    Raises:
        InputError: there is none.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("*.yaml"), key=_order)
            if not inside:
                raise InputError("no case (*.yaml) in the folder", file=path)
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _order(path: Path) -> tuple[int, str]:
    """Numbered files by number."""
    digits = path.stem.partition("-")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdecimal() else 10**9, path.name


def attempts(case: Case, policies: Sequence[str] = ()) -> list[Attempt]:
    """What is to be run of a case: each part under each of its policies and placements.

    Args:
        policies: only under these, as far as the case names them or they claim what it needs;
            empty = all.

    Raises:
        InputError: a policy of the case doesn't exist.
    """
    parts = enumerate(case.parts, start=1)
    return [attempt for number, scene in parts for attempt in _of_part(number, scene, case, policies)]


def _of_part(number: int, scene: AnyScene, case: Case, only: Sequence[str]) -> Iterator[Attempt]:
    lacking = tuple(missing(scene.needs))
    runs = not lacking
    if not isinstance(scene, Scene):
        if not only:
            yield Attempt(number, needs=lacking, runs=runs)
        return
    policies = _policies(scene, case, only)
    if not policies and not only and runs:
        # Each of the features is there, but no policy has all of them.
        lacking, runs = tuple(sorted({*lacking, *(BY_POLICY.keys() & set(scene.needs))})), False
    if not runs:
        if policies or not only:
            yield Attempt(number, needs=lacking, runs=False)
        return
    for policy in policies:
        for placement in scene.placements:
            yield Attempt(number, policy, placement, lacking)


def _policies(scene: Scene, case: Case, only: Sequence[str]) -> list[str]:
    """The policies that a part is for."""
    candidates = scene.policies or only or EVERY
    found = []
    for name in candidates:
        try:
            policy = make_policy(scene, name, scene.placements[0])
        except InputError as error:
            if name not in scene.policies:
                raise
            raise InputError(error.message, file=case.path, column="policies", mend=error.mend) from None
        if (scene.policies and (not only or name in only)) or (
            not scene.policies and claims(policy).issuperset(BY_POLICY.keys() & set(scene.needs))
        ):
            found.append(name)
    return found


def run_attempt(case: Case, attempt: Attempt) -> Attempt:
    """Run one attempt; returns it with its differences. One that can't be run comes back as it is."""
    if not attempt.runs:
        return attempt
    scene = case.parts[attempt.part - 1]
    if isinstance(scene, ReaderScene):
        found = check_reader(scene)
    elif isinstance(scene, ProcessScene):
        found = check_process(scene)
    else:
        found = check_scene(scene, attempt.policy, attempt.placement)
    return Attempt(attempt.part, attempt.policy, attempt.placement, attempt.needs, differences=tuple(found))


def run_case(case: Case, policies: Sequence[str] = ()) -> CaseResult:
    """Run all of a case; `policies` as for `attempts`."""
    return CaseResult(case, tuple(run_attempt(case, attempt) for attempt in attempts(case, policies)))


def check_scene(scene: Scene, policy: Specification, placement: str) -> list[str]:
    """Play a part of a case, compare and check the invariants; returns the differences.

    It is played twice at once, step by step in turn, for I8: the same input gives the same
    output, and two simulators in one process don't influence each other.
    """
    play, twin = Play(scene, policy, placement), Play(scene, policy, placement)
    checker = Checker(play)
    try:
        for instant, _ in zip_longest(play.instants(), twin.instants()):
            if instant is not None:
                checker.settled(*instant)
        checker.ended()
        if play.text() != twin.text():
            checker.differences.append("I8: two plays of the same input, step by step in turn, differ")
        play.check_replay()
    except TrainmasterError as error:
        checker.differences.append(str(error))
    return checker.differences


def summary(results: Sequence[CaseResult]) -> str:
    """`N of M passed`, and what the others lack."""
    count = {
        status: sum(result.status == status for result in results) for status in (PASSED, FAILED, NOT_YET)
    }
    words = [f"{count[PASSED]} of {len(results)} passed"]
    if count[FAILED]:
        words.append(f"{count[FAILED]} failed")
    if count[NOT_YET]:
        lacking: dict[str, int] = {}
        for result in results:
            if result.status == NOT_YET:
                for feature in result.needs:
                    lacking[feature] = lacking.get(feature, 0) + 1
        most = sorted(lacking.items(), key=lambda item: (-item[1], item[0]))
        words.append(f"{count[NOT_YET]} not yet ({', '.join(f'{name} {number}' for name, number in most)})")
    return "; ".join(words)
