"""Rows that can't be taken apart and names that would steer a terminal: dropped one by one, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.model.errors import InputError
from trainmaster.testing.trace_samples import SAMPLES
from trainmaster.traces import load_trace

GOOD = "job_id,submit_s,duration_s,num_gpus\na,0,10,1\nb,5,10,2\n"


def message(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        load_trace(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_stray_quote_swallows_no_rows(write) -> None:
    path = write('job_id,submit_s,duration_s,num_gpus\na,0,10,1\n"b,5,10,2\nc,6,1,1\nd"e,6,1,1\n')
    trace = load_trace(path)
    assert [job.id for job in trace.jobs] == ["a", "c", 'd"e']
    assert (trace.dropped, trace.problems.rows) == ({"quote_open": 1}, 4)
    assert message(path, strict=True) == (
        f"{path}, row 3: a quoted field does not end on its line (remove the quote)"
    )
    last = load_trace(write(GOOD + '"c,6,1,1'))
    assert (len(last), last.dropped) == (2, {"quote_open": 1})


def test_a_line_break_in_a_field_costs_one_row(write) -> None:
    path = write('job_id,submit_s,duration_s,num_gpus\na,0,10,1\n"b\n\nb",5,10,2\nc,6,10,1\n,6,1,1\n')
    trace = load_trace(path)
    assert [job.id for job in trace.jobs] == ["a", "c"]
    assert trace.dropped == {"id_missing": 1, "line_break": 1}
    assert [(example.row, example.reason) for example in trace.problems.examples] == [
        (3, "line_break"),
        (7, "id_missing"),
    ]
    assert message(path, strict=True) == (
        f"{path}, row 3: a quoted field runs over the end of its line, 2 further (one row a line)"
    )


def test_a_line_break_at_the_very_end_of_a_row(write) -> None:
    trace = load_trace(write('job_id,submit_s,duration_s,num_gpus\na,0,10,"1\n"\nb,0,10,1\nc,0,10,"1"\n'))
    assert ([job.id for job in trace.jobs], trace.dropped) == (["b", "c"], {"line_break": 1})


@pytest.mark.parametrize(("lines", "reason"), [(100, "line_break"), (101, "quote_open")])
def test_a_quoted_field_is_looked_for_over_a_hundred_lines(write, lines: int, reason: str) -> None:
    path = write(f'{GOOD}"{"x" * 9}' + "\nc,6,1,1" * (lines - 1) + '\n",1,1,1\n')
    assert reason in load_trace(path).dropped


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_very_long_field_costs_one_row(write, quote: str) -> None:
    long = f"{quote}{'x' * 131_073}{quote}"
    trace = load_trace(write(f"{GOOD}{long},6,1,1\nd,6,1,1\n"))
    assert [job.id for job in trace.jobs] == ["a", "b", "d"]
    assert (trace.dropped, trace.problems.rows) == ({"field_too_long": 1}, 4)
    just = load_trace(write(f"{GOOD}{quote}{'x' * 131_072}{quote},6,1,1\n"))
    assert (len(just), just.dropped) == (3, {})


def test_a_header_that_can_not_be_taken_apart_is_the_files_fault(write) -> None:
    path = write('job_id,submit_s,duration_s,"num_gpus\na,0,10,1\n')
    assert message(path) == f"{path}, row 1: a quoted field does not end on its line (remove the quote)"


@pytest.mark.parametrize("name", ["helios", "openb", "gavel", "pai", "tiresias"])
def test_every_table_reader_counts_rows_that_it_never_sees(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    path = sample.write(tmp_path)
    before = load_trace(path, format=name)
    path.write_text(sample.text.rstrip("\n") + "\n" + "x" * 200_000 + "\n", encoding="utf-8")
    after = load_trace(path, format=name)
    assert after.problems.rows == before.problems.rows + 1
    assert after.dropped == {**before.dropped, "field_too_long": 1}
    assert len(after) == len(before)


def test_a_task_row_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    path = SAMPLES["pai"].write(tmp_path)
    tasks = path.parent / "pai_task_table.csv"
    tasks.write_text(tasks.read_text().rstrip("\n") + '\n"x\n')
    trace = load_trace(path, format="pai")
    assert trace.problems.noted["task_row_invalid"] >= 1
    assert any("does not end on its line" in example.message for example in trace.problems.examples)


@pytest.mark.parametrize("mark", ["\x1b[2J", "\x07", "\x7f", "\x9b", "\u202e", "\u2028", "\t"])
@pytest.mark.parametrize(
    "row",
    [
        "a{}b,0,5,1,x,u,m,s",
        "b,0,5,1,x{}y,u,m,s",
        "b,0,5,1,x,u{}v,m,s",
        "b,0,5,1,x,u,m{}n,s",
        "b,0,5,1,x,u,m,s{}t",
    ],
)
def test_names_have_no_control_characters(write, row: str, mark: str) -> None:
    path = write(
        f"job_id,submit_s,duration_s,num_gpus,tenant,user,model,status\n{row.format(mark)}\nc,0,5,1,x,u,m,s\n"
    )
    trace = load_trace(path)
    assert [job.id for job in trace.jobs] == ["c"]
    assert trace.dropped == {"name_invalid": 1}
    assert mark not in "".join(trace.problems.lines())
    assert mark not in message(path, strict=True)


def test_names_of_any_language_are_fine(write) -> None:
    names = ["équipe", "视觉", "team\u00a0a", "👩\u200d🔬", "می\u200cخواهم"]
    rows = "".join(f"{name},0,5,1,{name}\n" for name in names)
    trace = load_trace(write(f"job_id,submit_s,duration_s,num_gpus,tenant\n{rows}"))
    assert [job.id for job in trace.jobs] == names


def test_columns_and_values_are_shown_without_control_characters(write) -> None:
    path = write("job_id,submit_s,duration_s,num_gpus,co\x1blour\na,0,5,1e12\x1b,x\nb,0,5,-1\x1b,x\n")
    lines = load_trace(path).problems.lines()
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)
    assert "column co\\x1blour" in lines[1]
    path = write(GOOD, "lo\x1bg.csv")
    assert load_trace(path).name == "lo\\x1bg"
    assert "\x1b" not in message(path, format="helios")
