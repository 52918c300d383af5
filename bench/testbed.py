"""Against a real testbed: 400 jobs on 8 nodes x 8 V100, as the authors of Muri ran them.

In the records of Muri (Zhao et al., SIGCOMM 2022) jobs start at multiples of 360 s, and
starting costs 30 s. That holds for first starts too: the jobs that started exactly once
ran a median of 28.6 s (SRTF), 32.7 s (SRSF) and 29.3 s (Tiresias) longer than their
duration. Jobs ran 5.3 % longer than their nominal duration over all; both readings, with
and without that, are reported. Nothing is fitted. The notes give the mean JCT by size
too: it shows what the overall mean hides.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import correlation, mean

from replay import Replay, jct_by_job
from support import Found, Suite, data

MEASURED_H = {"srtf": ("SRTF", 69.2), "srsf": ("SRSF", 66.3), "las": ("tiresias", 93.5)}
"""Records and measured mean JCT, hours, by policy."""

STRETCHES = {"": 1.0, "-stretched": 1.053}
COSTS = ("--checkpoint-cost", "0", "--restore-cost", "30", "--start-cost", "30")


def replay_of(policy: str, stretch: float) -> Replay:
    """The testbed's run, simulated."""
    options = ("--predictor", "oracle", "--placement", "pack", *COSTS)
    return Replay("philly_muri_testbed_400", 8, 8, f"{policy}(round_s=360)", options, stretch=stretch)


@dataclass(frozen=True)
class Recorded:
    """A job as measured: GPUs, and JCT in seconds."""

    gpus: int
    jct_s: float


@cache
def recorded(policy: str) -> dict[str, Recorded]:
    """The records of a policy, by job."""
    records, _ = MEASURED_H[policy]
    with data(f"known_results/muri_testbed/{records}/job.csv").open(newline="") as file:
        return {
            str(int(row["job_id"])): Recorded(int(row["num_gpu"]), float(row["JCT"]))
            for row in csv.DictReader(file)
        }


def mean_hours(policy: str, stretch: float) -> float:
    """Simulated mean JCT, hours."""
    return mean(jct_by_job(replay_of(policy, stretch)).values()) / 3600


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, equal values sharing their mean rank."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    result = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for index in order[first : last + 1]:
            result[index] = (first + last) / 2 + 1
        first = last + 1
    return result


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation."""
    return correlation(ranks(one), ranks(other))


def add(suite: Suite) -> None:
    """Errors of mean JCT, their order, and the order of the jobs."""
    for ending, stretch in STRETCHES.items():
        for policy in MEASURED_H:
            how = f"mean JCT of {replay_of(policy, stretch).how} against the measured one"
            suite.row(f"testbed-{policy}{ending}", "% error", how, target=12.0)(_error(policy, stretch))
        suite.row(
            f"testbed-order{ending}", "holds", "mean JCT: srsf < srtf < las", target=1.0, better="higher"
        )(_order(stretch))
        for policy, (records, _) in MEASURED_H.items():
            how = f"Spearman, JCT by job, against known_results/muri_testbed/{records}/job.csv"
            target = 0.9 if policy == "srtf" else None
            suite.row(f"testbed-ranks-{policy}{ending}", "rho", how, target=target, better="higher")(
                _ranks(policy, stretch)
            )


def _error(policy: str, stretch: float) -> Callable[[], Found]:
    def measure() -> Found:
        hours, (_, expected) = mean_hours(policy, stretch), MEASURED_H[policy]
        signed = (hours / expected - 1) * 100
        note = f"mean JCT {hours:.2f} h, measured {expected} h: {signed:+.1f} %"
        return Found(abs(signed), f"{note}; {by_size(policy, stretch)}")

    return measure


def by_size(policy: str, stretch: float) -> str:
    """Mean JCT of the two commonest sizes, ours and measured, in words."""
    ours, theirs = jct_by_job(replay_of(policy, stretch)), recorded(policy)
    words = []
    for gpus in (8, 32):
        jobs = [name for name, job in theirs.items() if job.gpus == gpus]
        hours = mean(ours[name] for name in jobs) / 3600
        measured = mean(theirs[name].jct_s for name in jobs) / 3600
        words.append(f"{len(jobs)} jobs of {gpus} GPUs {hours:.1f} h, measured {measured:.1f} h")
    return "; ".join(words)


def _order(stretch: float) -> Callable[[], Found]:
    def measure() -> Found:
        srsf, srtf, las = (mean_hours(policy, stretch) for policy in ("srsf", "srtf", "las"))
        return Found(float(srsf < srtf < las), f"{srsf:.1f}, {srtf:.1f}, {las:.1f} h")

    return measure


def _ranks(policy: str, stretch: float) -> Callable[[], Found]:
    def measure() -> Found:
        ours, theirs = jct_by_job(replay_of(policy, stretch)), recorded(policy)
        rho = rank_correlation(list(ours.values()), [theirs[name].jct_s for name in ours])
        return Found(rho, f"{len(ours)} jobs")

    return measure
