"""`trainmaster simulate`, `policies` and `usage` as a user calls them: output and errors."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

import trainmaster as tm
from trainmaster.cli import main

TRACE = """job_id,submit_s,duration_s,num_gpus,tenant,user
a,0,100,8,blue,ann
b,0,100,8,red,bob
c,10,50,4,red,bob
d,20,5,1,blue,ann
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "week.csv"
    path.write_text(TRACE)
    return path


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    before = sys.argv
    sys.argv = ["trainmaster", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = before
    output = capsys.readouterr()
    return int(stop.value.code or 0), output.out, output.err


SMALL = ("--nodes", 1, "--gpus-per-node", 8)
FREE = ("--checkpoint-cost", 0, "--restore-cost", 0, "--predictor", "oracle")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"trainmaster {tm.__version__}\n", "")


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, out, _ = call(capsys, "simulate", trace, *SMALL, *FREE, "--policy", "fifo,sjf", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == 1
    # On one node of 8: a 0-100, b 100-200, c and d 200-250 and 200-205.
    assert document["runs"][0]["mean_jct_s"] == (100 + 200 + 240 + 185) / 4
    # sjf: a (its row is first) 0-100, then d and c together, then b from 150.
    assert document["runs"][1]["mean_jct_s"] == (100 + 250 + 140 + 85) / 4


def test_folder_holds_the_files_and_replaces_those_of_an_earlier_run(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, _, _ = call(capsys, "simulate", trace, *SMALL, "--policy", "srtf", "--events", "--out", out)
    assert code == 0
    names = {"summary.json", "jobs.csv", "series.json", "events.jsonl", "report.html"}
    assert {path.name for path in out.iterdir()} == names
    code, _, _ = call(capsys, "simulate", trace, *SMALL, "--policy", "fifo,las", "--out", out)
    assert code == 0
    assert {path.name for path in out.iterdir()} == names - {"events.jsonl"}
    rows = list(csv.DictReader((out / "jobs.csv").read_text().splitlines()))
    assert [(row["policy"], row["job_id"]) for row in rows[::4]] == [("fifo", "a"), ("las", "a")]
    assert rows[1]["wait_s"] == "100"


def test_same_figures_in_parallel_and_over_a_sweep(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    def runs(*more: object) -> list[dict[str, object]]:
        words = ("simulate", trace, "--nodes", "1,2", "--gpus-per-node", 8, "--policy", "fifo,srtf", "--json")
        figures = json.loads(call(capsys, *words, "--seed", "0,1", *more)[1])["runs"]
        timing = {"cpu_s", "wall_s", "decision_ms_mean", "decision_ms_p99", "peak_rss_mib"}
        return [{key: value for key, value in run.items() if key not in timing} for run in figures]

    alone = runs("--jobs", 1)
    assert len(alone) == 8
    assert alone == runs("--jobs", 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "strf"), "unknown policy 'strf' (did you mean 'srtf'?)"),
        (("--policy", "las(limt=3)"), "policy las has no knob 'limt' (did you mean 'limit'?)"),
        (("--policy", "fifo(placement=spread)"), "policy fifo has no knob 'placement'"),
        (("--policy", "fifo,,las"), "an empty policy name"),
        (("--policy", "fifo("), "can't read policy 'fifo('"),
        (("--policy", "las(queues=0)"), "knob las.queues: 0 is out of range"),
        (("--predictor", "orcle"), "unknown predictor 'orcle' (did you mean 'oracle'?)"),
        (("--predictor", "noisy:x"), "sigma must be a number"),
        (("--placement", "park"), "unknown placement 'park'"),
        (("--nodes", "0"), "--nodes 0: expected whole numbers >= 1"),
        (("--gpus-per-node", "0"), "0 GPUs"),
        (("--jobs", "0"), "--jobs is 0"),
        (("--seed", "-1"), "--seed -1: expected whole numbers >= 0"),
        (("--set", "las.queues=3"), "--set names policy 'las', which is not simulated"),
        (("--set", "queues=3"), "can't read --set queues=3"),
        (("--checkpoint-cost", "-1"), "checkpoint_s is -1.0"),
        (("--warmup", "nan"), "warmup_s is nan"),
        (("--format", "phily"), "unknown"),
        (("--events",), "--events writes a file (say where with --out DIR)"),
        (("--failures", "nofile.csv"), "nofile.csv: cannot be read: No such file"),
        (("--nodes", "x"), "--nodes x: expected whole numbers"),
        (("--bogus",), "No such option: --bogus"),
        (("--limit", "many"), "'--limit'"),
    ],
)
def test_bad_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], trace: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, err = call(capsys, "simulate", trace, *SMALL, "--policy", "fifo", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_output_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    code, _, err = call(capsys, "simulate", trace, *SMALL, "--out", trace)
    assert code == 2
    assert err == f"trainmaster: {trace}: is not a folder (give --out a folder)\n"
    code, _, err = call(capsys, "simulate", trace, *SMALL, "--out", trace / "below")
    assert code == 1
    assert err.count("\n") == 1


def test_policy_class_from_python(trace: Path) -> None:
    class Mine(tm.Policy):
        """Alphabetical, as an example."""

        name = "mine"

    cluster = tm.Cluster.homogeneous(1, 8)
    result = tm.simulate(tm.load_trace(trace), cluster, ["fifo", Mine], predictor="oracle")
    assert [run["policy"] for run in result.runs] == ["fifo", "mine"]
    with pytest.raises(tm.InputError, match="unknown setting 'placment'"):
        tm.simulate(tm.load_trace(trace), cluster, Mine, placment="pool")
    with pytest.raises(tm.InputError, match="did you mean 'seed'"):
        tm.simulate(tm.load_trace(trace), cluster, Mine, seeds=[0, 1])


def test_an_estimate_that_nobody_asked_for_names_the_policy(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from trainmaster.policies import Policy\n"
        "from trainmaster.policies.parts.ordering import Order, rank\n"
        "class MyOrder(Order):\n"
        "    def pending_key(self, job, now):\n        return rank(job.estimate.total, job)\n"
        "class Mine(Policy):\n    name = 'mine'\n"
        "    def compose(self):\n        self.ordering = MyOrder()\n"
    )
    code, _, error = call(capsys, "simulate", trace, *SMALL, "--policy", f"fifo,{file}")
    assert code == 1 and len(error.splitlines()) == 1
    assert error.startswith(f"trainmaster: policy {file}: an estimate is read (job.estimate, remaining or")


@pytest.mark.parametrize(
    ("policy_says", "order_says", "message"),
    [
        ("preemptive = True", "pass", "under MyOrder nobody gives way: set it there too"),
        ("pass", "preemptive = True", "MyOrder preempts, so the policy must say `preemptive = True`"),
        ("uses_estimates = True", "pass", "`uses_estimates` is read on the ordering: set it on MyOrder"),
        ("stable = False", "pass", "`stable` is read on the ordering: set it on MyOrder"),
    ],
)
def test_what_a_policy_says_in_the_wrong_place_is_refused(
    capsys: pytest.CaptureFixture[str],
    trace: Path,
    tmp_path: Path,
    policy_says: str,
    order_says: str,
    message: str,
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from trainmaster.policies import Policy\n"
        "from trainmaster.policies.parts.ordering import Order\n"
        f"class MyOrder(Order):\n    {order_says}\n"
        f"class Mine(Policy):\n    name = 'mine'\n    {policy_says}\n"
        "    def compose(self):\n        self.ordering = MyOrder()\n"
    )
    code, _, error = call(capsys, "simulate", trace, *SMALL, "--policy", file)
    assert code == 1 and message in error and len(error.splitlines()) == 1


def test_usage_bills_what_was_held(capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call(capsys, "simulate", trace, *SMALL, *FREE, "--policy", "fifo", "--events", "--out", out)
    code, text, _ = call(capsys, "usage", out, "--csv")
    assert code == 0
    rows = [line.split(",") for line in text.splitlines()]
    assert rows[0] == ["tenant", "jobs", "gpu_hours"]
    assert [(name, jobs) for name, jobs, _ in rows[1:]] == [("red", "2"), ("blue", "2")]
    assert [float(hours) * 3600 for _, _, hours in rows[1:]] == pytest.approx([1000, 805])
    _, text, _ = call(capsys, "usage", out, "--by", "user", "--from", 150, "--to", 210, "--json")
    assert json.loads(text) == [
        {"user": "bob", "jobs": 2, "gpu_hours": pytest.approx((50 * 8 + 10 * 4) / 3600)},
        {"user": "ann", "jobs": 1, "gpu_hours": pytest.approx(5 / 3600)},
    ]
    code, _, err = call(capsys, "usage", out, "--policy", "las")
    assert code == 2
    assert "no run matches (choose with --policy fifo)" in err


def test_policies_are_listed_and_described(capsys: pytest.CaptureFixture[str]) -> None:
    names = [entry["name"] for entry in json.loads(call(capsys, "policies", "--json")[1])]
    assert names[:8] == ["fifo", "sjf", "srtf", "srsf", "las", "gittins", "priority", "drf"]
    assert names[8:] == ["timeslice", "standard"]
    described = json.loads(call(capsys, "policies", "las", "--json")[1])
    assert described["parts"]["ordering"] == "AttainedService"
    assert {"name", "default", "range", "help"} == described["knobs"][0].keys()


def test_records_say_how_to_make_them_again(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    words = ("simulate", str(trace), "--nodes", "1", "--gpus-per-node", "8", "--policy", "fifo", *FREE)
    more = ("--restore-cost", "600", "--warmup", "5")
    document = json.loads(call(capsys, *words, *more, "--out", tmp_path / "o", "--jobs", 2, "--json")[1])
    assert document["command"].split()[1:] == [str(word) for word in (*words, *more)]
    run = document["runs"][0]
    assert run["costs"]["restore_s"] == 600
    assert (run["warmup_s"], run["relax_s"]) == (5, None)
    # Between the submissions, 0 s and 20 s, the 8 GPUs were busy.
    assert run["utilization_in_span"] == 1.0


def test_what_the_log_recorded_and_what_is_not_modelled(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "job_id,submit_s,duration_s,num_gpus,queue_s,gpu_type\na,0,9,1,60,a100\nb,0,9,1,180,h100\nc,0,9,0,999,\n"
    )
    _, out, err = call(capsys, "simulate", log, *SMALL, "--policy", "fifo", "--json")
    assert json.loads(out)["trace"]["recorded"] == {"jobs": 2, "mean_wait_s": 120.0}
    _, _, err = call(capsys, "simulate", log, *SMALL, "--policy", "fifo")
    assert "as recorded in the log: mean wait 2.0 min over 2 jobs" in err
    assert "not modelled: GPU types (the cluster names none: give --cluster), asked by 2 jobs" in err
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{gpus: 8, type: A100}]\n")
    _, out, err = call(capsys, "simulate", log, "--cluster", cluster, "--policy", "fifo", "--json")
    dropped = json.loads(out)["trace"]["dropped"]
    assert dropped == {"gpu_type_not_offered": 1, "zero_gpus": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "fifo,las,fifo"), "policy 'fifo' stands twice"),
        (("--nodes", "10000000"), "10000000 nodes are too many (at most 100000)"),
        (("--policy", "srtf", "--set", "srtf.round_s=1e300"), "knob srtf.round_s: 1e300 is out of range"),
        (("--restore-cost", "1e300"), "restore_s is 1e+300"),
        (("--set", "placement.relax=1e300"), "placement.relax is 1e+300"),
    ],
)
def test_more_bad_usage(
    capsys: pytest.CaptureFixture[str], trace: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, err = call(capsys, "simulate", trace, *SMALL, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("view.start(next(iter(view.pending_classes)).head(), 3)", "AttributeError"),
        ("view.wake(0)", "asks to be woken at 0"),
        ("view.preempt(next(iter(view.pending_classes)).head())", "can't be stopped, it is pending"),
    ],
)
def test_policies_that_fail_say_where_in_one_line(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path, body: str, message: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import trainmaster as tm\nclass Mine(tm.Policy):\n    name = 'mine'\n"
        f"    def plan(self, view):\n        {body}\n"
    )
    for jobs in (1, 2):
        words = ("--policy", f"{file},fifo", "--out", tmp_path / "out", "--jobs", jobs)
        code, out, err = call(capsys, "simulate", trace, *SMALL, *words)
        assert (code, out) == (1, "")
        assert message in err
        assert err.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_doubtful_queues_are_pointed_out_once(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "nodes: [{gpus: 8}]\nqueues:\n  blue: {guaranteed: 8}\n  red: {guaranteed: 4, weight: 0}\n"
    )
    words = ("simulate", trace, "--cluster", cluster, "--policy", "fifo,sjf,srtf", "--seed", "0,1")
    _, _, err = call(capsys, *words)
    told = [line for line in err.splitlines() if line.startswith("cluster file: ")]
    assert told == [
        "cluster file: the cluster has 8 GPUs, but blue, red are guaranteed 12 together",
        "cluster file: queue red has weight 0: beyond its 4 guaranteed GPUs "
        "it gets only what no other queue wants",
    ]
    code, out, err = call(capsys, *words, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["runs"]
