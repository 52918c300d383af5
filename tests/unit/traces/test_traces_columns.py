"""CSV files with column names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.model.errors import InputError
from trainmaster.model.units import SECOND
from trainmaster.traces import load_trace

NAMES = {"job_id": "Job", "submit_s": "Queued At", "num_gpus": "GPUs, all", "duration_s": "Ran"}
HEADER = 'Job,Queued At,Ran,"GPUs, all",tenant,Owner\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(f"{HEADER}a,10,60,2,red,ann\nb,5,30,0.5,blue,bob\n")
    return path


def test_columns_by_their_own_names(log: Path) -> None:
    trace = load_trace(log, columns=NAMES, strict=True)
    found = [(job.id, job.submit, job.request.gpus, job.tenant, job.user) for job in trace.jobs]
    assert found == [("b", 5 * SECOND, 500, "blue", ""), ("a", 10 * SECOND, 2000, "red", "")]
    assert [truth.duration for truth in trace.truths] == [30 * SECOND, 60 * SECOND]
    assert trace.problems.noted == {"unknown_column": 1}


def test_one_column_may_stand_for_two_and_take_the_place_of_another(log: Path) -> None:
    trace = load_trace(log, columns={**NAMES, "tenant": "Owner", "user": "Owner"})
    assert [(job.tenant, job.user) for job in trace.jobs] == [("bob", "bob"), ("ann", "ann")]
    assert trace.problems.noted == {"unknown_column": 1}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (
            "c,2026-11-01 08:00,60,2,red,ann",
            "column Queued At: '2026-11-01 08:00' is not a finite time (",
        ),
        ("c,1,60,0,red,ann", "column GPUs, all: job 'c' asks for 0 GPUs"),
        ("c,1,60,two,red,ann", "column GPUs, all: 'two' is not a finite number"),
        ("c,1,0,2,red,ann", "column Ran: job 'c' runs for 0 s"),
        ("a,1,60,2,red,ann", "column Job: job 'a' was there before"),
    ],
)
def test_faults_name_the_columns_of_the_file(log: Path, row: str, what: str) -> None:
    log.write_text(f"{log.read_text()}{row}\n")
    with pytest.raises(InputError) as caught:
        load_trace(log, columns=NAMES, strict=True)
    assert f"{log}, row 4, {what}" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        (
            {"submit_s": "Queued"},
            "column Queued: the column is missing (found Job, Queued At, Ran, GPUs",
        ),
        ({"tenant": "Team"}, "column Team: the column is missing"),
        ({"submit": "Queued At"}, "there is no column 'submit' (did you mean 'submit_s'?)"),
    ],
)
def test_names_that_are_not_there(log: Path, columns: dict[str, str], what: str) -> None:
    with pytest.raises(InputError) as caught:
        load_trace(log, columns={**NAMES, **columns})
    assert what in str(caught.value)


def test_other_formats_have_their_names(log: Path) -> None:
    with pytest.raises(InputError, match="--columns is for plain CSV, not for slurm"):
        load_trace(log, format="slurm", columns=NAMES)


def test_an_unknown_header_leads_here(log: Path) -> None:
    with pytest.raises(InputError, match=r"or names for them: --columns submit_s=NAME,num_gpus=NAME"):
        load_trace(log)
    with pytest.raises(InputError, match=r"if it is one of these: --columns job_id=NAME\)"):
        load_trace(log, format="csv")
    with pytest.raises(InputError, match=r"if it is 'Queued At': --columns submit_s='Queued At'\)"):
        load_trace(log, columns={**NAMES, "submit_s": "Queued"})
