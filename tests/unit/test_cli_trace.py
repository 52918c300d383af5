"""The trace commands, as a user or a script calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from trainmaster.cli.trace import NARROWEST, app
from trainmaster.cli.trace_view import Glyphs, per_hour, show_statistics
from trainmaster.model.errors import InputError, OutputError
from trainmaster.traces import Problems, load_trace
from trainmaster.traces.download import DATASETS, DownloadError
from trainmaster.traces.statistics import describe
from trainmaster.traces.synth import synthesize

LOG = """\
job_id,submit_s,duration_s,num_gpus,tenant,user,status,requested_walltime_s,deadline_s
a,0,100,1,red,ann,completed,200,
b,60,7200,2,red,ann,failed,7200,9000
c,4000,30,8,blue,bob,completed,3600,
d,5000,90000,16,blue,bob,cancelled,172800,
zero,6000,10,0,blue,bob,completed,10,
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log [june].csv"
    path.write_text(LOG)
    return path


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(*arguments: object) -> dict[str, object]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0
    found: dict[str, object] = json.loads(result.stdout)
    return found


class TestInfo:
    def test_a_person_sees_figures_pictures_and_what_was_dropped(self, log: Path) -> None:
        result = call("info", log)
        assert result.exit_code == 0
        assert result.stdout == "", "human text leaves a pipe alone"
        for part in (
            "log [june]",
            "4 (1 dropped, see below)",
            "2 tenants, 2 users",
            "median 7,200 s",
            "50.0 % of the jobs, 2.0 each",
            "declared time",
            "Jobs per hour",
            "GPUs asked for",
            "Run time",
            "Tenants",
            "How jobs ended",
            "zero_gpus: row 6, column num_gpus",
        ):
            assert part in result.stderr, part
        assert "SYNTHETIC" not in result.stderr

    @pytest.mark.parametrize("columns", ["1", "20", "50", "66", "70"])
    def test_a_narrow_terminal_cuts_no_figure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        path = tmp_path / "long.csv"
        tenants = "".join(f"j{row},{row},{10**row},{2**row},{'t' * 25}{row}\n" for row in range(8))
        path.write_text(f"job_id,submit_s,duration_s,num_gpus,tenant\n{tenants}")
        shown = call("info", path).stderr
        assert "…" not in shown
        for figure in ("10,000,000 s", "12.5 %", "t" * 25, "7 days or more"):
            assert figure in shown, figure
        assert max(map(len, shown.splitlines())) <= max(NARROWEST, int(columns))
        assert "GPU fractions" in call("download").stderr

    def test_wide_enough_for_all(self, log: Path) -> None:
        result = call("info", log)
        assert max(map(len, result.stderr.splitlines())) <= 80

    def test_piped_text_has_no_blanks_at_the_ends_of_lines(self, log: Path) -> None:
        for words in (("info", log), ("download",)):
            lines = call(*words).stderr.splitlines()
            assert len(lines) > 8 and not [line for line in lines if line != line.rstrip()]

    def test_json_is_one_document_on_stdout(self, log: Path) -> None:
        found = document("info", log)
        assert (found["jobs"], found["dropped"], found["synthetic"]) == (4, {"zero_gpus": 1}, False)
        assert found["problems"]

    def test_strict_stops_at_the_first_row_at_fault(self, log: Path) -> None:
        with pytest.raises(InputError, match="row 6, column num_gpus"):
            call("info", log, "--strict")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"nothing\.csv: cannot be read: No such file"):
            call("info", tmp_path / "nothing.csv")

    def test_an_unknown_format_names_the_nearest(self, log: Path) -> None:
        with pytest.raises(InputError, match="did you mean 'philly'"):
            call("info", log, "--format", "phily")

    def test_a_trace_of_which_nothing_is_left(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.csv"
        path.write_text("job_id,submit_s,duration_s,num_gpus\na,0,1,0\n")
        result = call("info", path)
        assert "dropped 1 row, zero_gpus" in result.stderr
        assert "Jobs per hour" not in result.stderr

    def test_jobs_without_durations(self, tmp_path: Path) -> None:
        path = tmp_path / "models.csv"
        path.write_text("job_id,submit_s,num_gpus,model\na,0,1,bert\nb,10,2,bert\n")
        result = call("info", path)
        assert "not known for 2 jobs" in result.stderr
        assert "0 GPU-hours" not in result.stderr

    def test_recorded_waits_are_shown_where_there_are_any(self, log: Path, tmp_path: Path) -> None:
        assert "recorded wait" not in call("info", log).stderr
        assert document("info", log)["recorded_wait"] is None
        path = tmp_path / "waits.csv"
        path.write_text(
            "job_id,submit_s,duration_s,num_gpus,queue_s\na,0,1,1,30\nb,1,1,1,\nc,2,1,1,10\nd,3,1,1,80\n"
        )
        assert "recorded wait  median 30 s, mean 40 s, of 75.0 % of the jobs" in call("info", path).stderr
        assert document("info", path)["recorded_wait"] == {
            "jobs": 3,
            "share": 0.75,
            "mean_s": 40.0,
            "median_s": 30.0,
        }

    def test_a_reader_by_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "from trainmaster.traces.readers.normalized import NormalizedReader\n"
            "class Mine(NormalizedReader):\n    name = 'mine'\n"
        )
        (tmp_path / "log.txt").write_text("job_id,submit_s,duration_s,num_gpus\na,0,5,2\n")
        found = document("info", tmp_path / "log.txt", "--format", tmp_path / "mine.py")
        assert (found["format"], found["jobs"], found["max_gpus"]) == ("mine", 1, 2.0)


class TestConvert:
    def test_a_slice(self, log: Path, tmp_path: Path) -> None:
        out = tmp_path / "new" / "part.csv.gz"
        found = document("convert", log, out, "--from", 60, "--to", 5000, "--limit", 1)
        assert found == {"path": str(out), "jobs": 1, "jobs_read": 4, "dropped": {"zero_gpus": 1}}
        again = load_trace(out, strict=True)
        assert [job.id for job in again.jobs] == ["b"]
        assert again.jobs[0].deadlines[0].at == 9000 * 10**9

    @pytest.mark.parametrize("name", ["s.parquet", "s.csv.ZIP", "s.json"])
    def test_a_name_that_promises_another_format(self, log: Path, tmp_path: Path, name: str) -> None:
        for words in (("convert", log, tmp_path / name), ("synth", "--out", tmp_path / name)):
            with pytest.raises(InputError, match=r"is CSV, not \w+ \(name it .csv or .csv.gz\)"):
                call(*words)
        assert not (tmp_path / name).exists()

    def test_a_sample_depends_on_the_seed_alone(self, tmp_path: Path) -> None:
        source = tmp_path / "source.csv"
        call("synth", "--days", 2, "--nodes", 16, "--out", source)
        for name, seed in (("one", 1), ("again", 1), ("other", 2)):
            call("convert", source, tmp_path / name, "--sample", 0.25, "--seed", seed)
        one = (tmp_path / "one").read_bytes()
        assert one == (tmp_path / "again").read_bytes() != (tmp_path / "other").read_bytes()
        assert len(load_trace(tmp_path / "one")) == pytest.approx(len(load_trace(source)) / 4, rel=0.1)

    def test_people_are_told_what_was_dropped(self, log: Path, tmp_path: Path) -> None:
        result = call("convert", log, tmp_path / "out.csv")
        assert f"4 of 4 jobs written to {tmp_path / 'out.csv'}" in result.stderr
        assert "dropped 1 row, zero_gpus" in result.stderr
        assert result.stdout == ""

    def test_an_existing_file_is_replaced_whole_or_not_at_all(self, log: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        out.write_text("precious")
        with pytest.raises(InputError):
            call("convert", log, out, "--from", 10, "--to", 10)
        assert out.read_text() == "precious"
        call("convert", log, out)
        assert len(load_trace(out)) == 4
        assert sorted(path.name for path in tmp_path.iterdir()) == ["log [june].csv", "out.csv"]

    def test_a_place_that_cannot_be_written_is_one_clear_line(self, log: Path) -> None:
        with pytest.raises(OutputError, match="cannot be written"):
            call("convert", log, log / "below" / "a file.csv")
        with pytest.raises(OutputError, match="cannot be written: Is a directory"):
            call("convert", log, log.parent)

    @pytest.mark.parametrize(
        ("option", "value", "message"),
        [("--sample", 0, "fraction"), ("--limit", 0, "limit"), ("--sample", "nan", "fraction")],
    )
    def test_numbers_out_of_range(self, log: Path, option: str, value: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            call("convert", log, log.with_name("out.csv"), option, value)


class TestSynth:
    def test_a_file_with_a_telling_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        result = call("synth", "--days", 1, "--nodes", 8, "--seed", 3)
        name = "synthetic-philly-like-1d-load0.9-8x8-seed3.csv.gz"
        assert f"written to {name}" in result.stderr
        assert f"trainmaster simulate {name} --nodes 8 --gpus-per-node 8" in result.stderr
        again = load_trace(tmp_path / name)
        assert again.synthetic
        assert again.gpu_hours == pytest.approx(0.9 * 64 * 24, rel=0.05)

    def test_the_label_stays_when_the_name_does_not(self, tmp_path: Path) -> None:
        found = document("synth", "--days", 1, "--nodes", 8, "--out", tmp_path / "week.csv")
        assert found["synthetic"] is True
        assert found["load"] == pytest.approx(0.9, rel=0.05)
        assert "SYNTHETIC" in call("info", tmp_path / "week.csv").stderr
        call("convert", tmp_path / "week.csv", tmp_path / "other.csv", "--limit", 10)
        assert document("info", tmp_path / "other.csv")["synthetic"] is True

    def test_the_same_seed_gives_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("one.csv.gz", "two.csv.gz"):
            call("synth", "--preset", "helios-like", "--days", 1, "--nodes", 8, "--out", tmp_path / name)
        assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()

    @pytest.mark.parametrize(
        ("option", "value", "message"),
        [
            ("--preset", "phily-like", "did you mean 'philly-like'"),
            ("--days", -1, "days is -1"),
            ("--load", "nan", "load is nan"),
            ("--nodes", 0, "nodes is 0"),
            ("--seed", -1, "seed is -1"),
        ],
    )
    def test_numbers_out_of_range(self, tmp_path: Path, option: str, value: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            call("synth", option, value, "--out", tmp_path / "out.csv")
        assert not (tmp_path / "out.csv").exists()


class TestDownload:
    def test_without_a_name_it_lists_them(self) -> None:
        listed = call("download").stderr
        assert all(name in listed for name in DATASETS)
        assert [row["name"] for row in json.loads(call("download", "--json").stdout)] == list(DATASETS)

    def test_an_unknown_name(self) -> None:
        with pytest.raises(InputError, match="did you mean 'helios'"):
            call("download", "helio")

    def test_what_to_do_next(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fetch(dataset: object, folder: Path, *, progress: object) -> list[Path]:
            progress("trace-data.tar.gz", 5, 10)  # type: ignore[operator]
            return [folder / "trace-data.tar.gz"]

        monkeypatch.setattr("trainmaster.traces.download.download", fetch)
        told = call("download", "philly", "--out", tmp_path).stderr
        assert "cite Jeon et al." in told
        assert f"complete: {tmp_path / 'trace-data.tar.gz'}" in told
        assert "trainmaster simulate trace-data/cluster_job_log" in told
        found = document("download", "philly", "--out", tmp_path)
        assert found["files"] == [str(tmp_path / "trace-data.tar.gz")]

    def test_a_failure_comes_through(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def fetch(*_: object, **__: object) -> list[Path]:
            raise DownloadError("the server answers 404")

        monkeypatch.setattr("trainmaster.traces.download.download", fetch)
        with pytest.raises(DownloadError, match="404"):
            call("download", "swf", "--out", tmp_path)


@pytest.mark.parametrize("command", ["info", "convert", "download", "synth"])
def test_every_help_has_an_example(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"trainmaster trace {command}" in " ".join(result.output.split())


class TestView:
    @pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
    @pytest.mark.parametrize("width", [80, 200])
    def test_it_fits_and_needs_no_more_than_the_terminal_has(
        self, encoding: str, width: int, tmp_path: Path
    ) -> None:
        trace = synthesize("philly-like", days=3, load=0.9, nodes=16)
        with (tmp_path / "screen").open("w", encoding=encoding) as screen:
            show_statistics(Console(file=screen, width=width), describe(trace), Problems())
        shown = (tmp_path / "screen").read_text(encoding=encoding)
        assert "\x1b" not in shown
        assert max(map(len, shown.splitlines())) <= width
        assert "SYNTHETIC" in shown
        assert "…" not in shown, "nothing is cut off"
        assert ("#" in shown) == (encoding == "ascii")

    def test_columns_are_as_high_as_their_hours(self) -> None:
        picture = per_hour([8, 0, 4, 1], 40, Glyphs(ascii_only=False), height=2)
        assert picture.splitlines() == ["8 │█", "  │█ █▂", "0 └┴───", "   day 0"]

    def test_many_hours_share_a_column(self) -> None:
        picture = per_hour([2, 4] * 24 * 7, 50, Glyphs(ascii_only=True), height=1)
        top, axis, days = picture.splitlines()
        assert top == "3 |" + "#" * 42
        assert axis == "0 +" + ("+" + "-" * 20) * 2
        assert days == "   day 0".ljust(3 + 21) + "day 7"

    def test_a_bar_shows_what_is_not_nothing(self) -> None:
        glyphs = Glyphs(ascii_only=False)
        assert [glyphs.bar(share, 4) for share in (0, 0.0001, 0.5, 1)] == ["", "▏", "██", "████"]
        assert glyphs.bar(5 / 32, 4) == "▋"

    def test_the_command_line_loads_nothing_heavy_before_it_runs(self) -> None:
        code = (
            "import sys; from trainmaster.cli.trace import app; "
            "sys.exit(' '.join({'numpy', 'rich.table', 'trainmaster.traces'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stderr.strip() == ""
