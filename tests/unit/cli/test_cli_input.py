"""Numbers, paths, names and the user's own files on the command line: refused in one line, or harmless."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.cli import main

TRACE = "job_id,submit_s,duration_s,num_gpus,tenant,user\na,0,100,4,x,u\nb,50,10,2,y,v\n"
CLUSTER = ("--nodes", "1", "--gpus-per-node", "4")

POLICY = """
import trainmaster as tm
print("loading")
class Mine(tm.Policy):
    "Mine."
    name = "mine"
    def compose(self):
        print("making")
    def plan(self, view):
        print("planning")
        super().plan(view)
"""
READER = """
from trainmaster.traces.readers.normalized import NormalizedReader
print("loading")
class Mine(NormalizedReader):
    name = "mine"
    def read(self, source, problems):
        print("reading")
        yield from super().read(source, problems)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "week.csv").write_text(TRACE)
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "reader.py").write_text(READER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the program; returns (exit code, stdout, stderr), those of workers included."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainmaster", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        output = capfd.readouterr()
        assert "Traceback" not in output.err
        return int(stop.value.code or 0), output.out, output.err

    return run


def refused(done: tuple[int, str, str]) -> str:
    """The only line of an error of the user's."""
    code, out, err = done
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err[:-1]


class TestColumns:
    LOG = 'Job,"Queued, at",GPUs,Ran\na,0,4,100\nb,50,2,10\n'

    def test_every_command_takes_them(self, call: Any) -> None:
        Path("own.csv").write_text(self.LOG)
        words = (
            "--columns",
            "job_id=Job,submit_s=Queued, at",
            "--columns",
            "num_gpus=GPUs, duration_s = Ran",
        )
        assert json.loads(call("trace", "info", "own.csv", *words, "--json")[1])["jobs"] == 2
        assert json.loads(call("simulate", "own.csv", *CLUSTER, *words, "--json")[1])["trace"]["jobs"] == 2
        assert call("trace", "convert", "own.csv", "new.csv", *words)[0] == 0
        assert Path("new.csv").read_text() == "job_id,submit_s,duration_s,num_gpus\na,0,100,4\nb,50,10,2\n"

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("Queued At", "can't read --columns Queued At (write submit_s=NAME,num_gpus=NAME)"),
            ("submit_s=", "can't read --columns submit_s= "),
            ("job_id=Job,job_id=Ran", "--columns names job_id twice"),
        ],
    )
    def test_what_can_not_be_read(self, call: Any, text: str, what: str) -> None:
        assert what in refused(call("simulate", "week.csv", *CLUSTER, "--columns", text))


class TestNumbers:
    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("--from", "nan"), "--from is nan"),
            (("--to", "inf"), "--to is inf"),
            (("--from", "-inf"), "--from is -inf"),
            (("--from", "1e300"), "--from is 1e+300"),
            (("--from", "60", "--to", "50"), "the span from 60.0 to 50.0 is empty"),
            (("--from", "50", "--to", "50"), "the span from 50.0 to 50.0 is empty"),
        ],
    )
    @pytest.mark.parametrize("form", [(), ("--csv",), ("--json",)])
    def test_spans_of_usage(self, call: Any, words: tuple[str, ...], what: str, form: tuple[str]) -> None:
        assert call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", "--events", "--out", "out")[0] == 0
        assert what in refused(call("usage", "out", *words, *form))
        assert what in refused(call("trace", "convert", "week.csv", "new.csv", *words))
        assert what in refused(call("simulate", "week.csv", *CLUSTER, *words))
        assert not Path("new.csv").exists()

    def test_a_span_without_any_use_is_said(self, call: Any) -> None:
        assert call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", "--events", "--out", "out")[0] == 0
        code, _, err = call("usage", "out", "--from", "5000")
        assert (code, err.splitlines()[1:]) == (
            0,
            ["nobody held a GPU in this span of time; the run goes from 0 s to 110 s"],
        )
        assert json.loads(call("usage", "out", "--from", "5000", "--json")[1]) == []

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (
                ("--warmup", "1e300"),
                "--warmup 1e+300 and --cooldown 0 leave no job to count (jobs are submitted",
            ),
            (("--cooldown", "51"), "--warmup 0 and --cooldown 51 leave no job to count"),
            (("--warmup", "26", "--cooldown", "26"), "leave no job to count (jobs are submitted over 50 s)"),
            (("--warmup", "1", "--cooldown", "1"), "leave no job to count"),
            (("--warmup", "inf"), "warmup_s is inf"),
            (("--cooldown", "-1"), "cooldown_s is -1.0"),
        ],
    )
    def test_windows_that_leave_nothing(self, call: Any, words: tuple[str, ...], what: str) -> None:
        assert what in refused(call("simulate", "week.csv", *CLUSTER, *words))

    def test_windows_that_leave_something(self, call: Any) -> None:
        for words in (("--warmup", "50"), ("--cooldown", "50"), ("--warmup", "0.5")):
            done = call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", *words, "--json")
            assert [run["jobs"] for run in json.loads(done[1])["runs"]] == [1]

    def test_a_window_without_jobs_that_fit_is_said(self, call: Any) -> None:
        Path("week.csv").write_text(TRACE + "c,100,10,64,x,u\n")
        code, _, err = call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", "--warmup", "60")
        assert code == 0
        assert "fifo: --warmup and --cooldown leave no job to count" in err

    @pytest.mark.parametrize(
        "option",
        [
            "--checkpoint-cost",
            "--restore-cost",
            "--start-cost",
            "--checkpoint-interval",
            "--warmup",
            "--cooldown",
        ],
    )
    @pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e300", "x", ""])
    def test_seconds_of_simulate(self, call: Any, option: str, value: str) -> None:
        refused(call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", option, value))

    @pytest.mark.parametrize(
        "words",
        [
            ("--set", "placement.relax=nan"),
            ("--predictor", "noisy:nan"),
            ("--predictor", "noisy:inf"),
            ("--predictor", "noisy:-1"),
            ("--policy", "srtf(round_s=nan)"),
            ("--policy", "srtf", "--set", "srtf.min_run_s=inf"),
            ("--limit", "0"),
            ("--limit", "-3"),
            ("--jobs", "-1"),
            ("--seed", "1e300"),
            ("--nodes", "9" * 30),
            ("--gpus-per-node", "-1"),
        ],
    )
    def test_other_numbers_of_simulate(self, call: Any, words: tuple[str, ...]) -> None:
        refused(call("simulate", "week.csv", *CLUSTER, *words))

    @pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e300", ""])
    @pytest.mark.parametrize("option", ["--days", "--load", "--nodes", "--gpus-per-node"])
    def test_numbers_of_synth(self, call: Any, option: str, value: str) -> None:
        refused(call("trace", "synth", option, value, "--out", "new.csv"))
        assert not Path("new.csv").exists()

    @pytest.mark.parametrize("words", [("--sample", "nan"), ("--sample", "0.5", "--seed", "-1")])
    def test_samples(self, call: Any, words: tuple[str, ...]) -> None:
        refused(call("trace", "convert", "week.csv", "new.csv", *words))


class TestOptions:
    @pytest.mark.parametrize(
        ("words", "where"),
        [
            (("simulate", "week.csv", *CLUSTER, "--out", ""), "'--out'"),
            (("simulate", "week.csv", *CLUSTER, "--failures", ""), "'--failures'"),
            (("simulate", "week.csv", *CLUSTER, "--profile", ""), "'--profile'"),
            (("simulate", "week.csv", "--cluster", ""), "'--cluster'"),
            (("simulate", "", *CLUSTER), "'TRACE'"),
            (("usage", ""), "'DIR'"),
            (("trace", "info", ""), "'TRACE'"),
            (("trace", "convert", "week.csv", ""), "'OUT'"),
            (("trace", "synth", "--out", ""), "'--out'"),
            (("trace", "download", "philly", "--out", ""), "'--out'"),
        ],
    )
    def test_a_path_is_not_empty(self, call: Any, folder: Path, words: tuple[str, ...], where: str) -> None:
        before = sorted(path.name for path in folder.iterdir())
        line = refused(call(*words))
        assert f"Invalid value for {where}: is empty, expected a path" in line
        assert sorted(path.name for path in folder.iterdir()) == before

    def test_the_current_folder_can_be_named(self, call: Any) -> None:
        assert call("simulate", "week.csv", *CLUSTER, "--policy", "fifo", "--out", ".")[0] == 0
        assert Path("summary.json").exists()

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (
                ("--policy", "las(queues=3,queues=4)"),
                "knob 'queues' stands twice in 'las(queues=3,queues=4)'",
            ),
            (
                ("--policy", "las", "--set", "las.queues=3", "--set", "las.queues=3"),
                "--set las.queues stands twice (give it once)",
            ),
            (
                ("--set", "placement.relax=3", "--set", "placement.relax=4"),
                "--set placement.relax stands twice (give it once)",
            ),
            (("--policy", ""), "an empty policy name in ''"),
            (("--format", ""), "unknown trace format ''"),
        ],
    )
    def test_settings(self, call: Any, words: tuple[str, ...], what: str) -> None:
        assert what in refused(call("simulate", "week.csv", *CLUSTER, *words))

    @pytest.mark.parametrize("command", [("simulate",), ("trace", "convert"), ("trace", "info")])
    def test_help_of_format_names_files(self, call: Any, command: tuple[str, ...]) -> None:
        code, out, _ = call(*command, "--help")
        assert code == 0
        assert "FILE.py" in " ".join(out.partition("--format")[2][:400].split())


class TestOwnFiles:
    """What a policy or a reader prints is none of the results."""

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_simulate(self, call: Any, jobs: str) -> None:
        words = (
            "--policy",
            "policy.py,fifo",
            "--format",
            "reader.py",
            "--jobs",
            jobs,
            "--out",
            "out",
            "--json",
        )
        code, out, err = call("simulate", "week.csv", *CLUSTER, *words)
        assert code == 0
        assert [run["policy"] for run in json.loads(out)["runs"]] == ["policy.py", "fifo"]
        assert set(err.split()) >= {"loading", "making", "planning", "reading"}

    def test_trace_and_policies(self, call: Any) -> None:
        code, out, err = call("trace", "info", "week.csv", "--format", "reader.py", "--json")
        assert (code, json.loads(out)["jobs"], err) == (0, 2, "loading\nreading\n")
        code, out, err = call("trace", "convert", "week.csv", "new.csv", "--format", "reader.py", "--json")
        assert (code, json.loads(out)["jobs"], err) == (0, 2, "loading\nreading\n")
        assert "--set fifo.KNOB=VALUE" in call("policies", "fifo(backfill=easy)")[2]
        code, out, err = call("policies", "policy.py", "--json")
        assert (code, json.loads(out)["name"], err) == (0, "policy.py", "loading\nmaking\n")

    def test_stdout_is_back_afterwards(self, call: Any) -> None:
        before = sys.stdout
        call("policies", "policy.py")
        assert sys.stdout is before

    def test_one_that_can_not_be_made(self, call: Any) -> None:
        Path("policy.py").write_text(
            POLICY.replace('print("making")', "1 / 0").replace('print("loading")', "")
        )
        for jobs in ("1", "2"):
            words = ("--policy", "policy.py,fifo", "--jobs", jobs)
            code, out, err = call("simulate", "week.csv", *CLUSTER, *words)
            assert (code, out, err.count("\n")) == (1, "", 1)
            assert "policy policy.py: ZeroDivisionError: division by zero (" in err
        code, _, err = call("policies", "policy.py")
        assert (code, err.count("\n")) == (1, 1)

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_input_that_only_a_run_finds_at_fault(self, call: Any, jobs: str) -> None:
        Path("week.csv").write_text(f"{TRACE}c,0,8.9e9,4,x,u\nd,0,8.9e9,4,x,u\n")
        line = refused(call("simulate", "week.csv", *CLUSTER, "--policy", "fifo,sjf", "--jobs", jobs))
        assert "times add up to more than 292 years" in line

    @pytest.mark.parametrize(
        "words", [("convert", "week.csv", "week.csv/x.csv"), ("synth", "--out", "week.csv/x")]
    )
    def test_output_that_can_not_be_written(self, call: Any, words: tuple[str, ...]) -> None:
        code, out, err = call("trace", *words)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "cannot be written" in err


class TestControlCharacters:
    """Nothing that a file or an argument holds may steer the terminal."""

    NAMES = ("\x1b[2J", "a\x1bb.csv", "a\nb", "\x9b31m", "\u202ex.csv")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "words",
        [
            ("simulate", "{}", *CLUSTER),
            ("simulate", "week.csv", *CLUSTER, "--policy", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--policy", "{}.py"),
            ("simulate", "week.csv", *CLUSTER, "--policy", "fifo({}=1)"),
            ("simulate", "week.csv", *CLUSTER, "--policy", "fifo(backfill={})"),
            ("simulate", "week.csv", *CLUSTER, "--format", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--format", "{}.py"),
            ("simulate", "week.csv", *CLUSTER, "--predictor", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--placement", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--set", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--set", "{}.a=1"),
            ("simulate", "week.csv", *CLUSTER, "--failures", "{}"),
            ("simulate", "week.csv", *CLUSTER, "--{}"),
            ("simulate", "week.csv", "--cluster", "{}"),
            ("usage", "{}"),
            ("usage", "week.csv", "--by", "{}"),
            ("trace", "info", "{}"),
            ("trace", "download", "{}"),
            ("trace", "synth", "--preset", "{}"),
            ("{}",),
        ],
    )
    def test_arguments(self, call: Any, words: tuple[str, ...], name: str) -> None:
        line = refused(call(*(word.replace("{}", name) for word in words)))
        assert line.isprintable() or line.replace("\u00a0", " ").isprintable()

    def test_files_and_what_they_hold(self, call: Any, folder: Path) -> None:
        name = "we\x1b[2Jek.csv"
        Path(name).write_text(
            TRACE.replace("user\n", "us\x1ber\n") + "c\x1b[2J,3,1,1,x,u\nd,3,1,1,t\x1bz,u\n"
        )
        Path("out").mkdir()
        outputs = [
            *call("trace", "info", name)[1:],
            *call("trace", "convert", name, "n\x1bew.csv")[1:],
            *call("simulate", name, *CLUSTER, "--policy", "fifo", "--events", "--out", "out", "--json")[1:],
            *call("simulate", name, *CLUSTER, "--policy", "fifo")[1:],
            *call("usage", "out", "--csv")[1:],
            *call("usage", "out")[1:],
            *(path.read_text() for path in Path("out").iterdir()),
            Path("n\x1bew.csv").read_text(),
        ]
        assert len([text for text in outputs if text]) > 10
        assert not [text for text in outputs if "\x1b" in text]
        summary = json.loads(Path("out/summary.json").read_text())
        assert summary["trace"]["name"] == "we\\x1b[2Jek"
        assert summary["trace"]["dropped"] == {"name_invalid": 2}
        rows = list(csv.DictReader(io.StringIO(Path("out/jobs.csv").read_text())))
        assert [row["job_id"] for row in rows] == ["a", "b"]

    def test_a_file_name_that_is_no_text(self, call: Any) -> None:
        name = "we\udcffek.csv"
        Path(name).write_text(TRACE)
        code, _, err = call("simulate", name, *CLUSTER, "--policy", "fifo", "--out", "o\udcffut")
        assert code == 0
        assert "\\udcff" in err
        assert Path("o\udcffut/report.html").exists()
