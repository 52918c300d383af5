"""What the numbers say, in plain English.

Which runs are compared, against which baseline, who wins, and what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .measures import BY_FIGURE, Measure, judge
from .records import Records, Run
from .samples import slowest
from .text import count, duration, percent, plural, times, whole_percent

ALIKE = 0.01
"""Mean JCTs closer than this share count as equal."""


@dataclass(frozen=True)
class Comparison:
    """Runs on one cluster with one seed, the lowest mean JCT first.

    `where` names that cluster and seed, " on 32 nodes", where the records hold several, else "".
    `chosen` says why the baseline is the baseline.
    """

    runs: tuple[Run, ...]
    baseline: Run
    where: str = ""
    chosen: str = ""

    @property
    def winner(self) -> Run:
        return self.runs[0]

    @property
    def rival(self) -> Run | None:
        """What one would change to from the baseline: the winner, or where it wins itself, the next best."""
        return next((run for run in self.runs if run is not self.baseline), None)

    @property
    def others(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run is not self.winner and run is not self.baseline)


def compare(records: Records) -> Comparison:
    """The runs that share cluster and seed with the first run, ranked by mean JCT."""
    first = records.runs[0]
    same = [
        run
        for run in records.runs
        if (run.nodes, run.gpus, run.seed) == (first.nodes, first.gpus, first.seed)
    ]
    ranked = tuple(sorted(same, key=_rank))
    baseline, chosen = _baseline(same, ranked, records.baseline)
    return Comparison(ranked, baseline, _where(records.runs), chosen)


def _baseline(given: Sequence[Run], ranked: Sequence[Run], named: str | None) -> tuple[Run, str]:
    """The run that the others are compared with, and why it is that one.

    What clusters run today is first come, first served, mostly with backfilling; the quickest
    such policy is the one that flatters the others least.
    """
    asked = [run for run in given if run.policy == named]
    if asked:
        return asked[0], "as --baseline asks"
    fifos = [run for run in ranked if run.policy.partition("(")[0] == "fifo"]
    if len(fifos) > 1:
        return fifos[0], f"the quickest of the {len(fifos)} FIFO policies"
    return (fifos[0], "the only FIFO policy") if fifos else (given[0], "the first policy given")


def about_baseline(comparison: Comparison) -> str:
    """Which policy the others are compared with, and what to think of it; "" where there is only one."""
    baseline = comparison.baseline
    if comparison.rival is None:
        return ""
    chosen = f"The others are compared with {baseline.policy}, {comparison.chosen}."
    if baseline.backfill != "none":
        return chosen
    return (
        f"{chosen} It lets no job pass a blocked one, so it is easy to beat; schedulers such as Slurm’s "
        "backfill. Add fifo(backfill=easy) to the policies to compare with that."
    )


def _where(runs: Sequence[Run]) -> str:
    first, words = runs[0], ""
    if first.nodes is not None and len({run.nodes for run in runs}) > 1:
        words = f" on {plural(first.nodes, 'node')}"
    elif first.gpus is not None and len({run.gpus for run in runs}) > 1:
        words = f" on {plural(first.gpus, 'GPU')}"
    if first.seed is not None and len({run.seed for run in runs}) > 1:
        words += f" with seed {first.seed}"
    return words


def _rank(run: Run) -> tuple[bool, float]:
    mean = run["mean_jct_s"]
    return mean is None, mean or 0.0


def headline(comparison: Comparison) -> str:
    """The result in one sentence, without a full stop."""
    winner, baseline = comparison.winner, comparison.baseline
    best, reference = winner["mean_jct_s"], baseline["mean_jct_s"]
    if best is None:
        return "No job finished"
    where = comparison.where
    does = f"{winner.policy} finishes the average job in {duration(best)}{where}"
    if len(comparison.runs) == 1:
        wait = winner["mean_wait_s"]
        return does if wait is None else f"{does}, of which it waits {duration(wait)}"
    if alike(comparison):
        return f"All {len(comparison.runs)} policies finish the average job in about {duration(best)}{where}"
    if winner is baseline:
        rival = comparison.runs[1]
        second = rival["mean_jct_s"]
        if second is None:
            return f"{does}; no job finishes under any other policy"
        place = "" if len(comparison.runs) == 2 else ", the second best"
        return f"{does}, {_fast(best, second, rival.policy)}{place}"
    if reference is None:
        return does
    fast = f"{does}, {_fast(best, reference, baseline.policy)}"
    tail = slowest(winner)
    return f"{fast}, but {tail.short} {tail.verb('take')} longer" if _tail_grows(comparison) else fast


def alike(comparison: Comparison) -> bool:
    """Whether several policies are compared and their mean JCTs hardly differ."""
    means = [mean for run in comparison.runs if (mean := run["mean_jct_s"]) is not None]
    return len(means) == len(comparison.runs) > 1 and max(means) <= min(means) * (1 + ALIKE)


def _fast(best: float, reference: float, baseline: str) -> str:
    if best <= 0 or reference / best < 1.2:
        less = (
            f"in {whole_percent(1 - best / reference)} less time than" if reference > best else "as soon as"
        )
        return f"{less} {baseline}"
    return f"{times(reference / best)} times as fast as {baseline}"


def _tail_grows(comparison: Comparison) -> bool:
    """Whether the slowest hundredth visibly takes longer under the winner than under the baseline."""
    tail, reference = comparison.winner["p99_jct_s"], comparison.baseline["p99_jct_s"]
    return (
        tail is not None
        and reference is not None
        and tail > reference
        and duration(tail) != duration(reference)
    )


def price(comparison: Comparison, later: float | None) -> str:
    """What the winner costs, against the baseline.

    Args:
        later: share of the jobs that finish later than under the baseline, if known.
    """
    winner, baseline = comparison.winner, comparison.baseline
    if len(comparison.runs) == 1 or winner is baseline or alike(comparison):
        return _located(_tail(winner), comparison.where)
    costs, others = [], []
    stops, jobs = winner["preemptions"], winner["jobs"]
    if stops:
        each = f" ({times(stops / jobs)} a job)" if jobs and stops >= 0.1 * jobs else ""
        costs.append(f"{plural(stops, 'preemption')}{each}")
    tail, reference = winner["p99_jct_s"], baseline["p99_jct_s"]
    if tail is not None and reference is not None:
        unlucky, now, before = slowest(winner), duration(tail), duration(reference)
        if now == before:
            others.append(f"{_capital(unlucky.take(now))} under both.")
        elif _tail_grows(comparison):
            costs.append(f"{unlucky.take(now)}, up from {before}")
        else:
            they = "it takes" if unlucky.single else "they take"
            gain = f"{_capital(unlucky.name)} {unlucky.verb('gain')} too"
            others.append(f"{gain}: {they} {unlucky.at_least(now)}, down from {before}.")
    if later:
        costs.append(f"{percent(later)} of the jobs finish later than under {baseline.policy}")
    elif later is not None:
        others.append(f"No job finishes later than under {baseline.policy}.")
    if stops == 0:
        others.append("No job is interrupted.")
    if costs:
        return " ".join([f"The price{comparison.where}: {'; '.join(costs)}.", *others])
    return _located(" ".join(others), comparison.where)


def _located(sentence: str, where: str) -> str:
    """The sentence, beginning with the cluster that it holds for."""
    if not sentence or not where:
        return sentence
    return f"{_capital(where[1:])}, {sentence[0].lower()}{sentence[1:]}"


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


def _tail(run: Run) -> str:
    median, p99 = run["median_jct_s"], run["p99_jct_s"]
    if median is None or p99 is None:
        return ""
    half = f"Half of the jobs are done within {duration(median)}"
    return f"{half}; {slowest(run).take(duration(p99))}."


def later_share(records: Records, comparison: Comparison) -> float | None:
    """Share of the jobs, finished under both, that end over a second later under the winner."""
    import numpy as np

    mine, other = records.jobs[comparison.winner.key], records.jobs[comparison.baseline.key]
    reference = other.jct_s
    if mine.ids != other.ids:
        reference = np.append(other.jct_s, np.nan)[other.rows_of(mine.ids)]
    both = np.isfinite(mine.jct_s) & np.isfinite(reference)
    if not both.any():
        return None
    return float(np.mean(mine.jct_s[both] > reference[both] + 1.0))


@dataclass(frozen=True)
class Best:
    """Who is best at one measure."""

    measure: Measure
    policies: tuple[str, ...]
    value: str


def best_at(runs: Sequence[Run]) -> list[Best]:
    """The best policies by measure; a measure at which nobody stands out is left out."""
    found = []
    for figure in (
        "mean_jct_s",
        "median_jct_s",
        "p99_jct_s",
        "mean_wait_s",
        "preemptions",
        "utilization",
        "makespan_s",
    ):
        measure = BY_FIGURE[figure]
        marks = judge(measure, runs)
        best = [run for run, mark in zip(runs, marks, strict=True) if mark == "best"]
        if best:
            found.append(Best(measure, tuple(run.policy for run in best), measure.cell(best[0])))
    return found


def load(records: Records, gpus: int | None) -> float | None:
    """GPU-hours asked over those that the cluster has between first and last submission."""
    span_h = records.trace.span_s / 3600
    return records.trace.gpu_hours / (gpus * span_h) if gpus and span_h > 0 else None


def recorded_waits(records: Records, comparison: Comparison) -> str:
    """How the waits in the log compare with those of the replays, and why they differ; else ""."""
    recorded, winner = records.trace.recorded, comparison.winner
    waits = [wait for run in comparison.runs if (wait := run["mean_wait_s"]) is not None]
    if recorded is None or not waits:
        return ""
    own = f"The log’s own mean wait is {duration(recorded.mean_wait_s)} ({plural(recorded.jobs, 'job')})"
    own = f"{own}, {_compared(recorded.mean_wait_s, waits)}."
    asked = load(records, winner.gpus)
    if asked is None or winner.gpus is None:
        return own
    grow = ", so queues must grow" if asked > 1 else ""
    here = f"here the jobs ask for {percent(asked)} of the GPU time that {plural(winner.gpus, 'GPU')} have"
    return f"{own} They need not agree: {here} while they arrive{grow}; the log’s cluster is not known."


def _compared(value: float, replays: Sequence[float]) -> str:
    """Where a time lies among those of the replays."""
    low, high = min(replays), max(replays)
    if low <= value <= high:
        place = "among the replays"
    else:
        place = f"{'above' if value > high else 'below'} {'every' if len(replays) > 1 else 'the'} replay"
    span = duration(low) if duration(low) == duration(high) else f"{duration(low)} to {duration(high)}"
    return f"{place} ({span})"


def unfinished(run: Run) -> str:
    """A warning where the figures don't cover all jobs, else ""."""
    jobs, finished = run["jobs"], run["finished"]
    if jobs is None or finished is None or finished >= jobs:
        return ""
    missing = f"{run.policy}: {count(jobs - finished)} of {plural(jobs, 'job')} did not finish"
    return f"{missing} and are not in its JCT figures."


def window(records: Records, run: Run) -> str:
    """A note where warm-up and cool-down leave jobs out of the figures, else ""."""
    replayed, counted = len(records.jobs[run.key].ids), run["jobs"]
    if counted is None or counted >= replayed:
        return ""
    return (
        f"The figures count {count(counted)} of {plural(replayed, 'job')}: those submitted after the warm-up "
        "and before the cool-down. The charts of completion and waiting times show all jobs."
    )
