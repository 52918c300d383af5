"""What is written reads back the same; the file is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.model.job import Deadline, Job, Request, Workload
from trainmaster.model.units import SECOND
from trainmaster.testing.readers import job_values
from trainmaster.testing.trace_samples import SAMPLES
from trainmaster.traces import FORMATS, Trace, Truth, load_trace, write_csv

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=8
)
names = words.filter(lambda word: not set(word) & set(";|"))
instants = st.integers(0, 10**18)
spans = st.integers(1, 10**17)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    gpus = draw(st.integers(1, 10**7))
    return Request(
        gpus,
        tuple(sorted(draw(st.sets(names, max_size=3)))),
        draw(st.none() | st.integers(1, 100)),
        draw(st.none() | st.integers(1, gpus)),
        draw(st.none() | st.integers(gpus, 2 * 10**7)),
        draw(st.booleans()),
    )


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    ids = draw(st.lists(names, unique=True, max_size=6))
    jobs, truths = [], []
    for index, (job_id, submit) in enumerate(
        zip(ids, sorted(draw(st.tuples(*[instants] * len(ids)))), strict=True)
    ):
        times = sorted(draw(st.sets(instants, max_size=3)))
        values = sorted(draw(st.tuples(*[st.floats(0, 1e6)] * len(times))), reverse=True)
        workload = draw(
            st.none()
            | st.builds(Workload, words, st.none() | st.integers(1, 10**6), st.none() | st.floats(0.5, 1e12))
        )
        jobs.append(
            Job(
                job_id,
                index,
                submit,
                draw(requests()),
                draw(st.just("") | words),
                draw(st.just("") | words),
                draw(st.integers(-5, 5)),
                draw(st.none() | spans),
                workload,
                tuple(Deadline(at, value) for at, value in zip(times, values, strict=True)),
                tuple(draw(st.lists(st.sampled_from(ids[:index]), unique=True, max_size=2))) if index else (),
                draw(st.just("") | words),
            )
        )
        duration = draw(spans if workload is None else st.none() | spans)
        truths.append(Truth(duration, draw(st.just("") | words), draw(st.none() | instants)))
    return Trace(jobs, truths, synthetic=draw(st.booleans()) and bool(jobs))


@given(trace=traces(), suffix=st.sampled_from([".csv", ".csv.gz"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
def test_round_trip(tmp_path: Path, trace: Trace, suffix: str) -> None:
    path = tmp_path / f"trace{suffix}"
    write_csv(trace, path)
    again = load_trace(path, strict=True)
    assert [job_values(job) for job in again.jobs] == [job_values(job) for job in trace.jobs]
    assert again.truths == trace.truths
    assert again.synthetic == trace.synthetic
    assert again.problems.noted == {}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_converts_to_ours(name: str, tmp_path: Path) -> None:
    trace = load_trace(SAMPLES[name].write(tmp_path))
    path = tmp_path / "converted.csv"
    write_csv(trace, path)
    again = load_trace(path, strict=True)
    assert [job_values(job) for job in again.jobs] == [job_values(job) for job in trace.jobs]
    assert again.truths == trace.truths


def test_known_text(tmp_path: Path) -> None:
    trace = Trace(
        [Job("a", 0, 0, Request(460), "t,1"), Job("b", 1, 1_500_000_000, Request(8000))],
        [Truth(SECOND), Truth(90 * SECOND, "failed")],
    )
    write_csv(trace, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        'job_id,submit_s,duration_s,num_gpus,tenant,status\na,0,1,0.46,"t,1",\nb,1.5,90,8,,failed\n'
    )
    trace.synthetic = True
    write_csv(trace, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == 'a,0,1,0.46,"t,1",,1'


def test_same_bytes_every_time_and_under_every_name(tmp_path: Path) -> None:
    trace = load_trace(SAMPLES["csv"].write(tmp_path))
    first, second, plain = tmp_path / "first.csv.gz", tmp_path / "second.csv.gz", tmp_path / "plain.csv"
    for path in (first, second, plain):
        write_csv(trace, path)
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == plain.read_bytes()
    assert first.read_bytes()[4:8] == b"\0\0\0\0", "no time stamp in the gzip header"


def test_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from trainmaster.traces import *;"
        "from trainmaster.testing.trace_samples import SAMPLES; here = Path(sys.argv[1])\n"
        "for name, text in sorted(SAMPLES.items()):\n"
        "    folder = here / name; folder.mkdir()\n"
        "    trace = load_trace(text.write(folder)); write_csv(sample(trace, 0.7, 3), here / f'{name}.csv')\n"
        "    print(trace.problems.lines(), trace.dropped)\n"
    )
    found = []
    for seed in ("1", "2"):
        here = tmp_path / seed
        here.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", code, str(here)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        found.append((done.stdout, {path.name: path.read_bytes() for path in here.glob("*.csv")}))
    assert len(found[0][1]) == len(FORMATS)
    assert found[0] == found[1]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    broken = Trace([Job("a", 0, 0, Request(1000)), Job("b", 1, "soon", Request(1000))], [Truth(1), Truth(1)])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write_csv(broken, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]
