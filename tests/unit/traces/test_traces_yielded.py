"""What a reader yields of the wrong type is told in one line, whichever field it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainmaster.model.errors import InputError
from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.traces import Reader, Trace, Truth
from trainmaster.traces.loading import read_trace
from trainmaster.traces.yielded import Yielded

JOB = Job(
    "a",
    2,
    5,
    Request(2000, ("V100",), 1, 1000, 4000),
    "team",
    "ann",
    1,
    60,
    Workload("resnet", 32, 1e4),
    (Deadline(900, 1.0),),
    ("z",),
    "strict",
)
PLAIN = Job("b", 3, 6, Request(1000))
TRUTH = Truth(7, "completed", 3)


def load(tmp_path: Path, *pairs: object) -> Trace:
    class Mine(Reader):
        name = "mine"
        citation = "none"

        def detect(self, head: str, path: Path) -> bool:
            return True

        def read(self, *_: object) -> Iterator[Any]:
            yield from pairs

    log = tmp_path / "week.log"
    log.write_text("whatever\n")
    return read_trace(Mine(), log)


def told(tmp_path: Path, *pairs: object) -> str:
    with pytest.raises(InputError) as caught:
        load(tmp_path, *pairs)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{tmp_path}/week.log: the reader mine fails: ").removesuffix(
        " (mend the reader)"
    )


def test_what_is_right_passes(tmp_path: Path) -> None:
    trace = load(tmp_path, (JOB, TRUTH), (PLAIN, Truth(1)))
    assert [job.id for job in trace.jobs] == ["a", "b"]


@pytest.mark.parametrize(
    ("pair", "what"),
    [
        (None, "it yields None, expected (Job, Truth)"),
        ("ab", "it yields 'ab', expected (Job, Truth)"),
        ([JOB, TRUTH], "it yields [Job("),
        ((JOB, None), "it yields (Job, NoneType), expected (Job, Truth)"),
        ((TRUTH, JOB), "it yields (Truth, Job), expected (Job, Truth)"),
        ((JOB, TRUTH, 1), "it yields (Job, Truth, int), expected (Job, Truth)"),
        (
            (JOB, Truth(float("nan"))),
            "job 'a': duration of Truth is nan, expected a whole number (int) or None",
        ),  # type: ignore[arg-type]
        ((replace(JOB, id=7), TRUTH), "job 7: id of Job is 7, expected text (str)"),  # type: ignore[arg-type]
        ((replace(JOB, request=None), TRUTH), "job 'a': request is None, expected a Request"),  # type: ignore[arg-type]
        ((replace(JOB, workload="m"), TRUTH), "job 'a': workload is 'm', expected a Workload or None"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, pair: object, what: str) -> None:
    text = told(tmp_path, (PLAIN, TRUTH), pair)
    assert text == what or (what.endswith("(") and text.startswith(what))


NEVER = (float("nan"), 1.5, b"x", {}, {1}, [("x",)], object(), np.int64(3))
"""Right for no field but those that hold any number."""

NUMBERS = {"iterations", "batch_size", "value"}


def places() -> Iterator[Any]:
    for part in (JOB, TRUTH, JOB.request, JOB.workload, JOB.deadlines[0]):
        assert part is not None
        for field in fields(part):
            yield pytest.param(part, field.name, id=f"{type(part).__name__}.{field.name}")


@pytest.mark.parametrize("known", [False, True], ids=["first", "later"])
@pytest.mark.parametrize(("part", "field"), list(places()))
def test_every_field_is_looked_at(part: Any, field: str, known: bool) -> None:
    looked = Yielded()
    if known:  # as for most rows: the request was looked at before
        assert looked.fault((JOB, TRUTH)) == ""
    bad = NEVER[2:] if field in NUMBERS else (*NEVER, "" if isinstance(getattr(part, field), int) else 0.0)
    for value in bad:
        wrong = replace(part, **{field: value})
        job, truth = JOB, TRUTH
        if isinstance(part, Job):
            job = wrong
        elif isinstance(part, Truth):
            truth = wrong
        elif isinstance(part, Request):
            job = replace(JOB, request=wrong)
        elif isinstance(part, Workload):
            job = replace(JOB, workload=wrong)
        else:
            job = replace(JOB, deadlines=(wrong,))
        for candidate in (job, replace(job, depends_on=())) if field != "depends_on" else (job,):
            assert field in looked.fault((candidate, truth)), (field, value)


def test_text_of_numpy_is_text() -> None:
    assert Yielded().fault((replace(JOB, id=np.str_("a")), TRUTH)) == ""


def test_a_reader_that_ends_itself(tmp_path: Path) -> None:
    class Mine(Reader):
        name = "mine"
        citation = "none"

        def detect(self, head: str, path: Path) -> bool:
            return True

        def read(self, *_: object) -> Iterator[Any]:
            yield PLAIN, TRUTH
            raise GeneratorExit

    log = tmp_path / "week.log"
    log.write_text("whatever\n")
    with pytest.raises(InputError, match="the reader mine fails: GeneratorExit"):
        read_trace(Mine(), log)
