"""Loading a result folder: what arrives, and what is refused with which words."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_folder import edit_json, edit_rows, write_rows

from trainmaster.model.errors import InputError
from trainmaster.report import load_records
from trainmaster.report.series import RunKey

Copied = Callable[[], Path]


def test_everything_arrives(folder: Path) -> None:
    records = load_records(folder)
    document = json.loads((folder / "summary.json").read_text())
    assert [run.policy for run in records.runs] == [run["policy"] for run in document["runs"]]
    assert records.trace.jobs == 300 and records.trace.dropped == {"zero GPUs": 7, "duration <= 0": 2}
    assert records.trace.name == "philly-like-synthetic-week.csv.gz" and records.trace.synthetic
    fifo = records.runs[0]
    assert fifo.key == RunKey("fifo", 4, 0)
    assert fifo["mean_jct_s"] == document["runs"][0]["mean_jct_s"]
    assert fifo["miss_rate"] is None and fifo["fallbacks"] is None
    for run in records.runs:
        jobs = records.jobs[run.key]
        assert len(jobs.ids) == run["jobs"] == 300
        assert jobs.jct_s.mean() == pytest.approx(run["mean_jct_s"])
        assert jobs.wait_s.mean() == pytest.approx(run["mean_wait_s"])
        assert {jobs.tenants[code] for code in jobs.tenant} <= {f"vc{n}" for n in range(8)}
        series = records.series[run.key]
        assert series.lanes is not None and len(series.lanes.nodes) == 4
        assert max(series.buckets.used_gpus) <= 32 + 1e-9


@pytest.mark.parametrize(
    ("trace", "name", "synthetic"),
    [
        ({"path": "a\\week.csv"}, "week.csv", False),
        ({"path": "data/synth.csv"}, "synth.csv", True),
        ({"path": "week.csv", "name": "My week", "synthetic": True}, "My week", True),
        ({"path": None, "name": "philly-like synthetic"}, "philly-like synthetic", True),
    ],
)
def test_names_of_traces(copied: Copied, trace: dict[str, Any], name: str, synthetic: bool) -> None:
    folder = copied()
    edit_json(folder / "summary.json", lambda document: document["trace"].update(trace))
    found = load_records(folder).trace
    assert (found.name, found.synthetic, found.ignored) == (name, synthetic, {})


def test_a_named_baseline_is_one_of_the_runs(copied: Copied) -> None:
    folder = copied()
    assert load_records(folder).baseline is None
    edit_json(folder / "summary.json", lambda document: document.update(baseline="las"))
    assert load_records(folder).baseline == "las"
    edit_json(folder / "summary.json", lambda document: document.update(baseline="lass"))
    with pytest.raises(InputError, match="column baseline: names 'lass', of which there is no run"):
        load_records(folder)


def test_an_empty_cell_is_a_job_that_did_not_finish(copied: Copied) -> None:
    folder = copied()
    edit_rows(folder / "jobs.csv", lambda rows: rows[3].update(jct_s="", wait_s="", finish_s=""))
    jobs = load_records(folder).jobs[RunKey("fifo", 4, 0)]
    assert (
        np.flatnonzero(np.isnan(jobs.jct_s)).tolist() == [3] == np.flatnonzero(np.isnan(jobs.wait_s)).tolist()
    )


def test_rows_of_a_sweep_go_to_their_runs_by_order(sweep_folder: Path) -> None:
    records = load_records(sweep_folder)
    assert len(records.runs) == len(records.jobs) == len(records.series) == 12
    for run in records.runs:
        assert records.jobs[run.key].jct_s.mean() == pytest.approx(run["mean_jct_s"])


def test_rows_of_a_sweep_go_to_their_runs_by_columns(sweep_folder: Path, tmp_path: Path) -> None:
    target = Path(shutil.copytree(sweep_folder, tmp_path / "columns"))
    with (target / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    runs = json.loads((target / "summary.json").read_text())["runs"]
    for index, row in enumerate(rows):
        run = runs[index // 150]
        row.update(nodes=run["cluster"]["nodes"], seed=run["seed"])
    with (target / "jobs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(reversed(rows))
    records, reference = load_records(target), load_records(sweep_folder)
    for run in records.runs:
        assert records.jobs[run.key].jct_s.tolist() == reference.jobs[run.key].jct_s[::-1].tolist()


def test_many_rows_cross_chunks(copied: Copied) -> None:
    """Row numbers in messages stay right beyond the first chunk."""
    folder = copied()
    edit_rows(folder / "jobs.csv", lambda rows: rows[1100].update(jct_s="12 minutes"))
    with pytest.raises(InputError, match=re.escape("row 1102, column jct_s: '12 minutes' is not a number")):
        load_records(folder)


@pytest.mark.parametrize("name", ["summary.json", "jobs.csv", "series.json"])
def test_a_missing_file_is_named_with_the_mend(copied: Copied, name: str) -> None:
    folder = copied()
    (folder / name).unlink()
    with pytest.raises(
        InputError, match=rf"{re.escape(name)}: is missing \(make the folder with .*simulate"
    ) as caught:
        load_records(folder)
    assert caught.value.file == str(folder / name)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", Path(__file__)):
        with pytest.raises(InputError, match="is not a result folder"):
            load_records(path)


@pytest.mark.parametrize("name", ["summary.json", "jobs.csv", "series.json"])
def test_a_folder_in_place_of_a_file(copied: Copied, name: str) -> None:
    folder = copied()
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(InputError, match=f"{re.escape(name)}: can't be read"):
        load_records(folder)


@pytest.mark.parametrize("name", ["summary.json", "series.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ('{"schema": NaN}', "NaN is not a number"),
        ("[" * 100_000, "is nested too deeply"),
        ("[]", "must be an object"),
        ("{}", "schema: is None, this version reads 1"),
        ('{"schema": 2, "runs": []}', "schema: is 2, this version reads 1"),
        ('{"schema": 1, "runs": {}}', "runs: must be a list"),
    ],
)
def test_foreign_documents(copied: Copied, name: str, content: str, message: str) -> None:
    folder = copied()
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"{re.escape(name)}.*{re.escape(message)}"):
        load_records(folder)


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("summary.json", ["runs"], [], "runs: has no runs"),
        ("summary.json", ["runs", 1, "policy"], None, r"runs\[1\].policy: must be a text"),
        ("summary.json", ["runs", 1, "policy"], "fifo", "names 'fifo' twice for the same cluster and seed"),
        ("summary.json", ["runs", 2, "mean_jct_s"], "1 h", r"runs\[2\].mean_jct_s: must be a number"),
        ("summary.json", ["runs", 2, "jobs"], True, r"runs\[2\].jobs: must be a number"),
        ("summary.json", ["runs", 0, "seed"], 0.5, r"runs\[0\].seed: must be a whole number"),
        ("summary.json", ["trace", "dropped"], [], "trace.dropped: must be an object"),
        ("summary.json", ["trace", "jobs"], None, "trace.jobs: must be a number"),
        (
            "series.json",
            ["runs", 0, "policy"],
            "gone",
            "has 'gone' on 4 nodes .* summary.json has no such run",
        ),
        (
            "series.json",
            ["runs", 0, "buckets", "used_gpus"],
            [1.0],
            "buckets: has lists of different lengths",
        ),
        ("series.json", ["runs", 0, "buckets", "width_s"], 0, "width_s: must be more than 0"),
        ("series.json", ["runs", 0, "lanes", "to_s"], 0, "to_s: must be after from_s"),
        ("series.json", ["runs", 0, "lanes", "segments", 0, 0], 4, r"segments\[0\]: must be \[node_index"),
        ("series.json", ["runs", 0, "lanes", "segments", 0, 1], 256, r"segments\[0\]: must be \[node_index"),
        ("series.json", ["runs", 0, "lanes", "segments", 0, 1], 0, r"segments\[0\]: must be \[node_index"),
        ("series.json", ["runs", 0, "lanes", "segments", 0, 3], -1e9, r"segments\[0\]: must be \[node_index"),
        (
            "series.json",
            ["runs", 0, "lanes", "segments", 0, 7],
            "sleeping",
            r"segments\[0\]: must be \[node_index",
        ),
    ],
)
def test_faulty_values_are_named(
    copied: Copied, name: str, path: list[Any], value: Any, message: str
) -> None:
    folder = copied()

    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    edit_json(folder / name, change)
    with pytest.raises(InputError, match=message):
        load_records(folder)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("jct_s", "soon", "row 7, column jct_s: 'soon' is not a number"),
        ("wait_s", "inf", "row 7, column wait_s: 'inf' is not finite"),
        ("num_gpus", "nan", "row 7, column num_gpus: 'nan' is not finite"),
        ("policy", "gone", "has rows of policy 'gone', summary.json has no such run"),
        ("job_id", "job-00000", "holds job 'job-00000' more often"),
    ],
)
def test_faulty_cells_are_named(copied: Copied, column: str, value: str, message: str) -> None:
    folder = copied()
    edit_rows(folder / "jobs.csv", lambda rows: rows[5].update({column: value}))
    if column == "job_id":  # only several runs of one policy make the order of rows matter
        edit_json(
            folder / "summary.json",
            lambda document: document["runs"].append(document["runs"][0] | {"seed": 9}),
        )
        edit_rows(folder / "jobs.csv", lambda rows: rows.extend(rows[:300]))
    with pytest.raises(InputError, match=message):
        load_records(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "column policy: is missing"),
        (lambda text: text.replace("tenant,", "owner,", 1), "column tenant: is missing"),
        (lambda text: text[:-40], "row 1201: has .* fields, the header names 19 .*damaged or cut off"),
        (lambda text: text.replace("\n", "\n\n", 1), "row 2: has 0 fields"),
        (lambda text: text.replace("las,", "fifo,"), "has no row of policy 'las'"),
        (lambda text: text + '"las', "is not CSV"),
        (lambda text: text + "\0", "is not CSV|has 1 fields"),
    ],
)
def test_faulty_tables(copied: Copied, change: Callable[[str], str], message: str) -> None:
    folder = copied()
    path = folder / "jobs.csv"
    path.write_bytes(change(path.read_bytes().decode().replace("\r\n", "\n")).encode())
    with pytest.raises(InputError, match=rf"jobs\.csv.*({message})"):
        load_records(folder)


def test_a_run_without_jobs_needs_no_rows(copied: Copied) -> None:
    folder = copied()
    write_rows(folder / "jobs.csv", [])
    edit_json(folder / "summary.json", lambda document: [run.update(jobs=0) for run in document["runs"]])
    assert all(jobs.jct_s.size == 0 for jobs in load_records(folder).jobs.values())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["summary.json", "jobs.csv", "series.json"]),
    place=st.integers(0, 2000),
    junk=st.binary(min_size=1, max_size=8),
)
def test_mutated_files_give_an_input_error_or_load(
    copied: Copied, name: str, place: int, junk: bytes
) -> None:
    folder = copied()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:place] + junk + content[place + len(junk) :])
    try:
        load_records(folder)
    except InputError as error:
        assert "\n" not in str(error).strip() or junk.count(b"\n")
