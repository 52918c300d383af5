"""What the report says in words, and the figures behind them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainmaster.report import glossary, load_records, reproduce, samples, sections, spread, story, sweep
from trainmaster.report.charts import Trend
from trainmaster.report.jobs import Jobs
from trainmaster.report.measures import BY_FIGURE, judge, present
from trainmaster.report.parts import Figure, colours_of, numbers, ranking
from trainmaster.report.records import RecordedWaits, Records, Run, Trace, as_run
from trainmaster.report.series import Buckets, RunKey, Series

HOUR = 3600.0


def run(policy: str, mean: float | None, *, nodes: int = 8, seed: int = 0, **figures: Any) -> Run:
    document = {"policy": policy, "cluster": {"gpus": 8 * nodes, "nodes": nodes}, "seed": seed}
    return as_run({**document, "jobs": 2000, "finished": 2000, "mean_jct_s": mean, **figures})


def jobs(jct: Sequence[float], wait: Sequence[float] | None = None, **more: Any) -> Jobs:
    amount = len(jct)
    waits = np.array(jct if wait is None else wait, dtype=float)
    columns: dict[str, Any] = {
        "ids": tuple(f"j{i}" for i in range(amount)),
        "tenants": ("a",),
        "tenant": np.zeros(amount, np.int64),
        "users": ("",),
        "user": np.zeros(amount, np.int64),
        "num_gpus": np.ones(amount),
    }
    return Jobs(**{**columns, **more}, jct_s=np.array(jct, dtype=float), wait_s=waits)


def records(runs: Sequence[Run], columns: Sequence[Jobs] | None = None, **more: Any) -> Records:
    table = columns or [jobs([1.0, 2.0]) for _ in runs]
    base = Records(
        version="0.1.0",
        command=None,
        trace=Trace("a b/week.csv", "week", False, 100, {}, {}, 36_000.0, 800.0),
        seed=0,
        runs=tuple(runs),
        jobs={item.key: own for item, own in zip(runs, table, strict=True)},
        series={},
    )
    return dataclasses.replace(base, **more)


def compared(*runs: Run) -> story.Comparison:
    return story.compare(records(runs))


def test_runs_are_ranked() -> None:
    comparison = compared(
        run("las", 5), run("fifo(backfill=easy)", 3), run("none", None), run("fifo", 9), run("srtf", 1)
    )
    assert [item.policy for item in comparison.runs] == ["srtf", "fifo(backfill=easy)", "las", "fifo", "none"]
    assert comparison.winner.policy == "srtf" and comparison.baseline.policy == "fifo(backfill=easy)"
    assert [item.policy for item in comparison.others] == ["las", "fifo", "none"]


@pytest.mark.parametrize(
    ("runs", "named", "baseline", "why"),
    [
        (["fifo", "srtf"], None, "fifo", "the only FIFO policy"),
        (["las", "fifo(backfill=easy)"], None, "fifo(backfill=easy)", "the only FIFO policy"),
        (
            ["fifo", "fifo(backfill=easy)", "srtf"],
            None,
            "fifo(backfill=easy)",
            "the quickest of the 2 FIFO policies",
        ),
        (["las", "srtf", "fifoish.py"], None, "las", "the first policy given"),
        (["fifo", "las", "srtf"], "las", "las", "as --baseline asks"),
    ],
)
def test_the_baseline_is_the_hardest_fifo_and_it_says_so(
    runs: list[str], named: str | None, baseline: str, why: str
) -> None:
    """The later in the list, the quicker."""
    means = [run(policy, 100 - rank) for rank, policy in enumerate(runs)]
    comparison = story.compare(records(means, baseline=named))
    assert (comparison.baseline.policy, comparison.chosen) == (baseline, why)
    assert story.about_baseline(comparison) == f"The others are compared with {baseline}, {why}."


def test_plain_fifo_is_called_easy_to_beat() -> None:
    plain = run("fifo", 2, knobs={"backfill": "none"})
    assert "Add fifo(backfill=easy)" in story.about_baseline(compared(plain, run("srtf", 1)))
    easy = run("fifo", 2, knobs={"backfill": "easy"})
    assert "Add fifo" not in story.about_baseline(compared(easy, run("srtf", 1)))
    assert story.about_baseline(compared(plain)) == "", "nothing is compared"


def test_only_runs_on_the_first_cluster_and_seed_are_compared() -> None:
    comparison = compared(run("fifo", 9), run("srtf", 1, nodes=16), run("srtf", 2, seed=1), run("srtf", 3))
    assert [item["mean_jct_s"] for item in comparison.runs] == [3, 9]


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (
            [run("fifo", 92_314.0), run("srtf", 18_654.0)],
            "srtf finishes the average job in 5 h 11 m, 4.9 times as fast as fifo",
        ),
        (
            [run("fifo", 1.1 * HOUR), run("sjf", HOUR)],
            "sjf finishes the average job in 1 h, in 9 % less time than fifo",
        ),
        (
            [run("fifo", HOUR), run("sjf", 2 * HOUR)],
            "fifo finishes the average job in 1 h, 2.0 times as fast as sjf",
        ),
        (
            [run("fifo", HOUR), run("las", 3 * HOUR), run("sjf", 1.1 * HOUR), run("none", None)],
            "fifo finishes the average job in 1 h, in 9 % less time than sjf, the second best",
        ),
        (
            [run("fifo", HOUR), run("las", 3 * HOUR), run("sjf", HOUR)],
            "fifo finishes the average job in 1 h, as soon as sjf, the second best",
        ),
        (
            [run("fifo", HOUR), run("sjf", None)],
            "fifo finishes the average job in 1 h; no job finishes under any other policy",
        ),
        ([run("fifo", HOUR), run("sjf", 1.001 * HOUR)], "All 2 policies finish the average job in about 1 h"),
        (
            [run("fifo", HOUR, mean_wait_s=600)],
            "fifo finishes the average job in 1 h, of which it waits 10 m",
        ),
        ([run("fifo", HOUR)], "fifo finishes the average job in 1 h"),
        (
            [run("fifo", 2 * HOUR, p99_jct_s=HOUR), run("srtf", HOUR, p99_jct_s=2 * HOUR)],
            "srtf finishes the average job in 1 h, 2.0 times as fast as fifo, "
            "but the slowest 1 % take longer",
        ),
        (
            [run("fifo", 2 * HOUR, p99_jct_s=HOUR), run("srtf", HOUR, p99_jct_s=HOUR + 1e-3)],
            "srtf finishes the average job in 1 h, 2.0 times as fast as fifo",
        ),
        (
            [run("fifo", 2 * HOUR, nodes=32), run("srtf", HOUR, nodes=32), run("srtf", 1.0, nodes=40)],
            "srtf finishes the average job in 1 h on 32 nodes, 2.0 times as fast as fifo",
        ),
        (
            [run("fifo", HOUR, nodes=32), run("srtf", HOUR, nodes=32), run("srtf", 1.0, nodes=32, seed=1)],
            "All 2 policies finish the average job in about 1 h with seed 0",
        ),
        ([run("fifo", None)], "No job finished"),
        ([run("fifo", None), run("sjf", HOUR)], "sjf finishes the average job in 1 h"),
    ],
)
def test_headlines(runs: list[Run], words: str) -> None:
    assert story.headline(compared(*runs)) == words


def test_the_price_names_what_got_worse() -> None:
    fifo = run("fifo", 9 * HOUR, p99_jct_s=40 * HOUR, preemptions=0)
    srtf = run("srtf", HOUR, p99_jct_s=50 * HOUR, preemptions=2345)
    assert story.price(compared(fifo, srtf), 0.0312) == (
        "The price: 2,345 preemptions (1.2 a job); the slowest 1 % of the jobs take 2 d 2 h or longer, "
        "up from 1 d 16 h; 3.1 % of the jobs finish later than under fifo."
    )


def test_no_price_is_invented() -> None:
    fifo = run("fifo", 9 * HOUR, p99_jct_s=40 * HOUR, preemptions=0)
    sjf = run("sjf", HOUR, p99_jct_s=30 * HOUR, preemptions=0)
    assert story.price(compared(fifo, sjf), 0.0) == (
        "The slowest 1 % of the jobs gain too: they take 1 d 6 h or longer, down from 1 d 16 h. "
        "No job finishes later than under fifo. No job is interrupted."
    )
    assert story.price(compared(run("fifo", 9 * HOUR), run("sjf", HOUR)), None) == ""
    same = run("sjf", HOUR, p99_jct_s=40 * HOUR)
    assert (
        story.price(compared(fifo, same), None)
        == "The slowest 1 % of the jobs take 1 d 16 h or longer under both."
    )


def test_the_price_names_the_cluster_of_a_sweep() -> None:
    fifo, other = run("fifo", 9, nodes=32), run("fifo", 1, nodes=40)
    quick = run("srtf", 1, nodes=32, preemptions=5)
    assert story.price(compared(fifo, quick, other), 0.0) == (
        "The price on 32 nodes: 5 preemptions. No job finishes later than under fifo."
    )
    calm = run("sjf", 1, nodes=32, preemptions=0)
    assert story.price(compared(fifo, calm, other), None) == "On 32 nodes, no job is interrupted."
    alone = run("fifo", HOUR, nodes=32, median_jct_s=60, p99_jct_s=7200)
    assert story.price(compared(alone, other), None).startswith("On 32 nodes, half of the jobs are done")


def test_without_a_rival_the_price_is_the_spread() -> None:
    alone = run("fifo", HOUR, median_jct_s=60, p99_jct_s=7200)
    assert (
        story.price(compared(alone), None)
        == "Half of the jobs are done within 1 m; the slowest 1 % of the jobs take 2 h or longer."
    )


def test_a_percentile_of_one_job_is_called_that() -> None:
    def price(finished: int, before: float, after: float) -> str:
        fifo, srtf = (
            run(name, mean, finished=finished, p99_jct_s=tail * HOUR)
            for name, mean, tail in (("fifo", 9 * HOUR, before), ("srtf", HOUR, after))
        )
        return story.price(compared(fifo, srtf), None)

    assert price(94, 3, 2) == "The slowest job (1 of 94) gains too: it takes 2 h, down from 3 h."
    assert price(94, 2, 3) == "The price: the slowest job (1 of 94) takes 3 h, up from 2 h."
    assert price(94, 2, 2) == "The slowest job (1 of 94) takes 2 h under both."
    assert price(250, 2, 3) == "The price: the slowest 1 % (3 of 250 jobs) take 3 h or longer, up from 2 h."
    tails = [run("fifo", 9, finished=94, p99_jct_s=HOUR), run("srtf", 1, finished=94, p99_jct_s=9 * HOUR)]
    assert story.headline(compared(*tails)).endswith(", but the slowest job takes longer")


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (94, "94 jobs: p99 is the time of the slowest job alone, p90 that of the 10th slowest, and one"),
        (5, "5 jobs: p99 is the time of the slowest job alone, p90 too, and one long job can move a mean."),
        (99, "99 jobs: p99"),
        (100, ""),
        (None, ""),
    ],
)
def test_a_small_sample_has_a_warning(finished: int | None, words: str) -> None:
    found = samples.small_sample(run("fifo", 1, finished=finished))
    assert found.startswith(words) and bool(found) == bool(words)


@pytest.mark.parametrize(
    ("recorded_s", "waits", "words"),
    [
        (600, (3600, 7200), "10 m (94 jobs), below every replay (1 h to 2 h)"),
        (9000, (3600, 7200), "2 h 30 m (94 jobs), above every replay (1 h to 2 h)"),
        (5400, (3600, 7200), "1 h 30 m (94 jobs), among the replays (1 h to 2 h)"),
        (600, (3600,), "10 m (94 jobs), below the replay (1 h)"),
    ],
)
def test_the_waits_of_the_log_stand_beside_those_of_the_replays(
    recorded_s: float, waits: Sequence[float], words: str
) -> None:
    runs = [run(f"p{rank}", 1 + rank, mean_wait_s=wait) for rank, wait in enumerate(waits)]
    own = records(runs)
    waited = dataclasses.replace(own.trace, recorded=RecordedWaits(94, recorded_s))
    told = story.recorded_waits(dataclasses.replace(own, trace=waited), story.compare(own))
    assert told == (
        f"The log’s own mean wait is {words}. They need not agree: here the jobs ask for 125.0 % of the GPU "
        "time that 64 GPUs have while they arrive, so queues must grow; the log’s cluster is not known."
    )
    assert story.recorded_waits(own, story.compare(own)) == ""


def test_the_log_has_a_bar_of_its_own() -> None:
    comparison = compared(run("fifo", 200, mean_wait_s=150))
    *_, log = ranking(comparison, {"fifo": "c0"}, RecordedWaits(9, 400.0))
    assert (log.name, log.solid, log.light, log.note) == ("the log itself", 0, 100, "6 m 40 s waiting")


def test_jobs_that_finish_later() -> None:
    fifo, srtf = run("fifo", 9), run("srtf", 1)
    slow, nan = jobs([100, 100, 100, 100, 100]), float("nan")
    quick = jobs([50, 100.5, 102, nan, 300])
    pair = records([fifo, srtf], [slow, quick])
    assert story.later_share(pair, story.compare(pair)) == pytest.approx(2 / 4)
    shuffled = jobs([300, 50, 100.5, 102], ids=("j4", "j0", "gone", "j2"))
    pair = records([fifo, srtf], [slow, shuffled])
    assert story.later_share(pair, story.compare(pair)) == pytest.approx(2 / 3)
    pair = records([fifo, srtf], [slow, jobs([nan])])
    assert story.later_share(pair, story.compare(pair)) is None


def test_marks_are_for_one_cluster_and_follow_what_is_better() -> None:
    runs = [run("a", 1, utilization=0.5), run("b", 2, utilization=0.9), run("c", 3, nodes=9), run("d", None)]
    assert judge(BY_FIGURE["mean_jct_s"], runs) == ["best", "worst", "", ""]
    assert judge(BY_FIGURE["utilization"], runs) == ["worst", "best", "", ""]
    assert judge(BY_FIGURE["jobs"], runs) == [""] * 4


def test_best_by_measure() -> None:
    runs = [run("a", 60, preemptions=0), run("b", 120, preemptions=0), run("c", 30, preemptions=9)]
    assert [(item.measure.name, item.policies, item.value) for item in story.best_at(runs)] == [
        ("mean JCT", ("c",), "30 s"),
        ("preemptions", ("a", "b"), "0"),
    ]


def test_measures_of_later_features_appear_with_their_data() -> None:
    assert "miss_rate" not in [item.figure for item in present([run("a", 1)])]
    assert "miss_rate" in [item.figure for item in present([run("a", 1), run("b", 1, miss_rate=0.0)])]
    table = numbers([run("a", None), run("b", 1.0, miss_rate=0.0)], present([run("b", 1, miss_rate=0.0)]))
    cells = {heading: cell for (heading, _), cell in zip(table.headings, table.rows[0], strict=True)}
    assert cells["mean JCT"].shown == "–" and cells["mean JCT"].why == "no job finished"
    assert cells["SLO miss"].shown == "–" and cells["SLO miss"].why == "no job has a deadline"
    assert "nodes" not in cells and "seed" not in cells


def test_a_column_that_repeats_the_jobs_is_left_out() -> None:
    def names(*finished: int) -> list[str]:
        return [
            item.figure for item in present([run("fifo", 1, jobs=5, finished=amount) for amount in finished])
        ]

    assert "finished" not in names(5, 5) and names(5, 5)[:2] == ["jobs", "mean_jct_s"]
    assert names(5, 4)[:2] == ["jobs", "finished"]


def test_a_command_that_reproduces() -> None:
    runs = [run("fifo", 1), run("fifo(backfill=easy)", 1), run("fifo", 1, nodes=16)]
    assert reproduce.command(records(runs)) == (
        "trainmaster simulate 'a b/week.csv' --policy 'fifo,fifo(backfill=easy)' --nodes 8,16 "
        "--gpus-per-node 8 --seed 0 --out DIR"
    )
    assert reproduce.command(records(runs, command="trainmaster simulate x")) == "trainmaster simulate x"
    assert reproduce.folded("trainmaster simulate 'x") == "trainmaster simulate 'x", (
        "not for a shell: left alone"
    )


def test_load_and_unfinished() -> None:
    assert story.load(records([run("fifo", 1)]), 64) == pytest.approx(800 / 640)
    assert story.load(records([run("fifo", 1)]), None) is None
    assert story.unfinished(run("fifo", 1, jobs=1000, finished=999)) == (
        "fifo: 1 of 1,000 jobs did not finish and are not in its JCT figures."
    )
    assert story.unfinished(run("fifo", 1)) == ""


def test_policies_and_choices_in_words() -> None:
    assert "EASY" in glossary.about_policy("fifo(backfill=easy)")
    assert glossary.about_policy("own.py") == ""
    assert glossary.about_choice(glossary.PREDICTORS, "noisy:0.3").startswith("noisy:0.3: the policies saw")
    assert glossary.about_choice(glossary.PREDICTORS, "crystal") == "crystal"


def test_colours_are_distinct_and_the_baseline_is_neutral() -> None:
    runs = [run(f"p{i}", 10 + i) for i in range(11)] + [run("fifo", 99)]
    comparison = compared(*runs)
    colours = colours_of(comparison, runs)
    assert colours["fifo"] == "cb" and colours["p0"] == "c0" and len(set(colours.values())) == 12
    assert colours_of(compared(run("fifo", 1), run("sjf", 2)), []) == {"fifo": "c0", "sjf": "c1"}


def test_bars_split_running_from_waiting() -> None:
    comparison = compared(run("fifo", 200, mean_wait_s=150), run("srtf", 100, mean_wait_s=20), run("x", None))
    rows = ranking(comparison, colours_of(comparison, []))
    assert [(row.name, row.solid, row.light) for row in rows] == [
        ("srtf", 40, 10),
        ("fifo", 25, 75),
        ("x", 0, 0),
    ]
    assert rows[0].note == "20 s waiting" and rows[2].shown == "–"


def test_quantiles_follow_the_definition_of_p99() -> None:
    values = np.arange(1000, dtype=float)[::-1]
    found = spread.quantiles(np.append(values, np.nan))
    assert len(found) == spread.POINTS + 1
    assert found[round(0.99 * spread.POINTS)] == np.sort(values)[int(0.99 * 1000)]
    assert found[0] == 0 and found[-1] == 999
    assert spread.quantiles(np.array([np.nan])) == []


def test_waits_by_size() -> None:
    nan = float("nan")
    fifo = jobs([9] * 5, [10, 20, 30, 40, nan], num_gpus=np.array([1, 1, 4, 64, 0.5]))
    pair = records([run("fifo", 1)], [fifo])
    found = spread.waits_by(pair, story.compare(pair), spread.by_size)
    assert [(waits.group, waits.share, waits.mean) for waits in found] == [
        ("1 GPU", 0.4, {"fifo": 15.0}),
        ("2–4 GPUs", 0.2, {"fifo": 30.0}),
        ("17 or more", 0.2, {"fifo": 40.0}),
    ]
    assert found[0].median == {"fifo": 15.0} and found[0].p90["fifo"] == pytest.approx(19.0)


def test_many_tenants_are_pooled() -> None:
    names = tuple(f"t{i:02}" for i in range(20))
    owner = np.repeat(np.arange(20), np.arange(20, 0, -1))
    waits = jobs(owner.astype(float), tenants=names, tenant=owner)
    pair = records([run("fifo", 1)], [waits])
    found = spread.waits_by(pair, story.compare(pair), spread.by_tenant(waits))
    assert [item.group for item in found] == [*names[:14], "6 others"]
    assert found[3].mean == {"fifo": 3.0}
    assert sum(item.share for item in found) == pytest.approx(1)
    assert spread.tenant_figure(found[:1], story.compare(pair), {}) is None


def tenants(*waits: Sequence[float]) -> Figure:
    """Waits of tenants a, b, …, each with a job, under each policy."""
    amount = len(waits[0])
    owned = {"tenants": tuple("abcdef"[:amount]), "tenant": np.arange(amount)}
    columns = [jobs([9.0] * amount, own, **owned) for own in waits]
    own = records([run(policy, 9 - i) for i, policy in enumerate(("fifo", "srtf")[: len(waits)])], columns)
    comparison = story.compare(own)
    found = spread.waits_by(own, comparison, spread.by_tenant(columns[0]))
    figure = spread.tenant_figure(found, comparison, {"fifo": "cb", "srtf": "c0"})
    assert figure is not None
    return figure


def test_the_axis_of_tenants_is_linear_unless_that_crushes_most() -> None:
    one_hardly_waits = tenants([2.0, 5 * HOUR, 6 * HOUR, 7 * HOUR])
    assert "logarithmic" not in one_hardly_waits.wide
    most_hardly_wait = tenants([2.0, 5.0, 6.0, 7 * HOUR])
    assert "mean wait, logarithmic" in most_hardly_wait.wide
    assert "drawn there" not in most_hardly_wait.subtitle
    assert tenants([0.0, 5.0, 6.0, 7 * HOUR]).subtitle.endswith("; waits under 1 s, 0 s too, are drawn there")
    assert "drawn there" not in tenants([0.0, 60.0]).subtitle


def test_the_title_counts_tenants_who_gain() -> None:
    assert tenants([60, 60], [30, 90]).title == "1 of 2 tenants wait less under srtf than under fifo"
    assert tenants([60, 60], [30, 50]).title == "Every tenant waits less under srtf than under fifo"
    assert tenants([60, 60], [60, 60.1]).title == "Every tenant waits as long under srtf as under fifo"
    assert tenants([60, 60], [60.1, 90]).title == "0 of 2 tenants wait less under srtf than under fifo"


def test_capacity_answers() -> None:
    comparison = compared(run("fifo", 9), run("srtf", 1))
    srtf = Trend("srtf", [(8, 100, 100, 100), (16, 50, 50, 50)])
    even = Trend("fifo", [(8, 900, 900, 900), (16, 110, 110, 110)])
    assert sweep.answer([srtf, even], comparison, "nodes") == (
        "Even on 16 nodes, fifo finishes the average job later than srtf does on 8 "
        "(1 m 50 s against 1 m 40 s)."
    )
    assert sweep.answer([srtf], comparison, "nodes") == (
        "From 8 to 16 nodes, the mean JCT under srtf goes from 1 m 40 s to 50 s."
    )
    assert sweep.answer([], comparison, "nodes") == ""


def test_a_sweep_averages_over_seeds() -> None:
    runs = [
        run("fifo", value, nodes=nodes, seed=seed)
        for nodes, seed, value in ((8, 0, 10), (8, 1, 30), (16, 0, 5))
    ]
    assert sweep.trends_of(runs, "mean_jct_s") == [Trend("fifo", [(8, 20, 10, 30), (16, 5, 5, 5)])]
    found = sweep.sweep(records(runs), story.compare(records(runs)), {"fifo": "c0"})
    assert (
        found is not None
        and found.title == "How many nodes are enough"
        and found.shown_above == "8 nodes, seed 0"
    )
    only_seeds = sweep.sweep(records(runs[:2]), story.compare(records(runs[:2])), {"fifo": "c0"})
    assert (
        only_seeds is not None and not only_seeds.figures and only_seeds.title == "How much depends on chance"
    )
    assert sweep.sweep(records(runs[:1]), story.compare(records(runs[:1])), {"fifo": "c0"}) is None


def test_the_median_of_the_chart_is_the_one_of_the_table(folder: Path) -> None:
    found = load_records(folder)
    comparison = story.compare(found)
    figure = spread.jct_figure(found, comparison, colours_of(comparison, found.runs))
    assert figure is not None and figure.table is not None
    medians = {row[0].shown: row[3].value for row in figure.table.rows}
    assert medians == {item.policy: item["median_jct_s"] for item in comparison.runs}
    p99 = {row[0].shown: row[7].value for row in figure.table.rows}
    assert p99 == {item.policy: pytest.approx(item["p99_jct_s"]) for item in comparison.runs}


def test_keys_name_runs() -> None:
    assert run("fifo", 1, nodes=3, seed=2).key == RunKey("fifo", 3, 2)


def test_the_table_over_time_says_over_what_it_averages() -> None:
    """Means and maxima are those of buckets, which are as wide as each run needs."""
    runs = [run("fifo", 2 * HOUR), run("srtf", HOUR)]
    widths = {runs[0].key: 2 * HOUR, runs[1].key: HOUR / 2}
    series = {
        key: Series(key, Buckets(0.0, width, (2.0, 4.0), (1.0, 1.0), (0.0, 8.0), (0.0, 16.0)), None)
        for key, width in widths.items()
    }
    own = records(runs, series=series)
    comparison = story.compare(own)
    found = sections.timeline(own, comparison, colours_of(comparison, runs))
    assert found is not None
    shown = {row[0].shown: [cell.shown for cell in row[1:]] for row in found.table.rows}
    assert [name for name, _ in found.table.headings][-1] == "averaged over"
    assert shown == {"srtf": ["3", "4", "8", "16", "30 m"], "fifo": ["3", "4", "8", "16", "2 h"]}


def test_the_table_of_a_sweep_counts_the_seeds_it_averages_over() -> None:
    runs = [
        *(run("fifo", mean * HOUR, seed=seed, p99_jct_s=9 * HOUR) for seed, mean in enumerate((1, 2, 6))),
        run("fifo", HOUR, nodes=16, p99_jct_s=5 * HOUR),
    ]
    comparison = compared(*runs)
    found = sweep.sweep(records(runs), comparison, colours_of(comparison, runs))
    assert found is not None
    assert [name for name, _ in found.table.headings] == [
        *("policy", "nodes", "runs"),
        *("mean JCT", "mean JCT, lowest", "mean JCT, highest"),
        *("p99 JCT", "p99 JCT, lowest", "p99 JCT, highest"),
    ]
    assert [[cell.shown for cell in row] for row in found.table.rows] == [
        ["fifo", "8", "3", "3 h", "1 h", "6 h", "9 h", "9 h", "9 h"],
        ["fifo", "16", "1", "1 h", "1 h", "1 h", "5 h", "5 h", "5 h"],
    ]
