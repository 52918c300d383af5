"""Speed and memory: whole replays, growth, parallel runs, start-up, reading, decisions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from statistics import median

from replay import FREE, ORACLE, Replay, cpu, figure, loop_ratio, measured, peak
from support import (
    DATA_VARIABLE,
    Found,
    Suite,
    data,
    median_cpu,
    program,
    python,
    repeated,
    run,
)

WEEKS = "philly_2017_82k"
POLICIES = {"fifo": 3.0, "srtf": 10.0, "las": 15.0}
"""CPU seconds that each may take on 82,247 jobs and 504 GPUs."""

LOOP = "the same, over a bare heapq loop of as many events (bench/support.py)"


def add_replays(suite: Suite) -> None:
    """Whole-process CPU time and memory, absolute and against the bare loop."""
    for policy, limit in POLICIES.items():
        replay = _on_63(policy)
        suite.row(f"cpu-82k-{policy}", "s", replay.how, target=limit)(cpu(replay, "as a user runs it"))
        suite.row(f"mem-82k-{policy}", "MiB", replay.how, target=250.0)(peak(replay))
        suite.row(f"loop-82k-{policy}", "x", LOOP)(loop_ratio(replay))
    for policy, limit in POLICIES.items():
        replay = _on_63(policy, *ORACLE, *FREE)
        note = "true durations, free restarts; held to the same target"
        suite.row(f"cpu-82k-{policy}-oracle", "s", replay.how, target=limit)(cpu(replay, note))
        suite.row(f"loop-82k-{policy}-oracle", "x", LOOP)(loop_ratio(replay))
    replay = Replay("philly_2017_attempts_152k", 125, 8, "fifo")
    suite.row("cpu-152k-fifo", "s", replay.how, target=6.0)(cpu(replay))
    suite.row("mem-152k-fifo", "MiB", replay.how)(peak(replay))
    suite.row("loop-152k-fifo", "x", LOOP)(loop_ratio(replay))


def _on_63(policy: str, *options: str, copies: int = 1) -> Replay:
    return Replay(WEEKS, 63, 8, policy, options, copies=copies)


# -- growth -------------------------------------------------------------------------------


def add_growth(suite: Suite) -> None:
    """Ten times the jobs; twice and four times the nodes under the same load."""
    for policy in POLICIES:
        one, ten = _on_63(policy), _on_63(policy, copies=10)
        suite.row(f"growth-10x-{policy}", "x", f"CPU time of {ten.how} over that of one copy", target=12.0)(
            _cpu_ratio(ten, one)
        )
        suite.row(f"cpu-10x-{policy}", "s", ten.how)(cpu(ten))
        suite.row(f"mem-10x-{policy}", "MiB", ten.how, target=800.0)(peak(ten))
        suite.row(f"loop-10x-{policy}", "x", LOOP)(loop_ratio(ten))
    for factor in (2, 4):
        for policy in POLICIES:
            few, many = (
                Replay(WEEKS, 63 * f, 8, policy, ("--limit", "10000"), squeeze=f) for f in (1, factor)
            )
            how = f"cpu_s of {many.how} over that of 63 nodes: the same jobs and load"
            suite.row(f"growth-{factor}x-nodes-{policy}", "x", how)(_simulation_ratio(many, few))


def _cpu_ratio(large: Replay, small: Replay) -> Callable[[], Found]:
    def measure() -> Found:
        many, one = (median_cpu(measured(replay).usages).value for replay in (large, small))
        return Found(many / one, f"{many:.3g} s and {one:.3g} s")

    return measure


def _simulation_ratio(large: Replay, small: Replay) -> Callable[[], Found]:
    def measure() -> Found:
        many, few = (measured(replay).summaries[0]["cpu_s"] for replay in (large, small))
        return Found(many / few, f"{many:.3g} s and {few:.3g} s")

    return measure


# -- two processes ------------------------------------------------------------------------

PAIR = "srtf,srtf(min_run_s=120)"
"""Two policies that take about as long."""


def add_parallel(suite: Suite) -> None:
    """Two policies in two processes. Other work on the machine only lowers these figures, so
    the best run counts."""
    options = ("--limit", "20000", "--jobs")
    alone, both = (Replay(WEEKS, 63, 8, PAIR, (*options, jobs)) for jobs in ("1", "2"))

    @suite.row("parallel-cores-used", "cores", both.how, target=1.5, better="higher")
    def cores() -> Found:
        runs = measured(both).usages
        note = f"CPU time over wall time, whole process; best of {len(runs)} runs"
        others = max(run.others for run in runs)
        return Found(
            max(run.cpu_s / run.wall_s for run in runs),
            f"{note}; others used up to {others:.1f} of {os.cpu_count()} cores meanwhile",
        )

    @suite.row("parallel-speedup", "x", f"wall time of {alone.how} over that with --jobs 2", better="higher")
    def speedup() -> Found:
        one, two = (min(run.wall_s for run in measured(replay).usages) for replay in (alone, both))
        return Found(one / two, f"{one:.3g} s and {two:.3g} s, each the best run")


# -- start-up -----------------------------------------------------------------------------

HEAVY = ("scipy", "matplotlib", "torch", "pandas")


def add_start(suite: Suite) -> None:
    """What a command costs before it does anything."""

    @suite.row("cpu-help", "s", "trainmaster --help", target=0.35)
    def cpu_of_help() -> Found:
        return median_cpu(repeated(lambda: run([program(), "--help"])))

    @suite.row("import-heavy-modules", "modules", "sys.modules after 'import trainmaster'", target=0.0)
    def heavy_modules() -> Found:
        code = f"import sys, trainmaster; print(*[name for name in {HEAVY} if name in sys.modules])"
        loaded = python(code).split()
        return Found(len(loaded), f"loaded: {', '.join(loaded) or 'none'} of {', '.join(HEAVY)}")


# -- peers, reading, decisions --------------------------------------------------------------

PEERS = {
    "fifo": (0.3, "Tiresias authors' simulator 2.4 s, Lucid 14-27 s, Gavel 17 s"),
    "srtf": (0.5, "Tiresias authors' simulator 7.5 s, Lucid 26-41 s"),
    "las": (0.5, "Tiresias authors' simulator 3.6 s, Lucid 10-23 s"),
}
"""Target, and the CPU seconds of other simulators on the same week and cluster."""


def add_peers(suite: Suite) -> None:
    """The simulation alone on a week that other simulators were timed on."""
    for ending, options in (("", (*ORACLE, *FREE)), ("-default", ())):
        for policy, (limit, others) in PEERS.items():
            replay = Replay("demo_philly_1week", 50, 8, policy, options)
            how = f"cpu_s of {replay.how}"
            note = (
                others if options else "with restart costs and predicted durations, held to the same target"
            )
            suite.row(f"peers-{policy}{ending}", "s", how, target=limit)(figure(replay, "cpu_s", note))
            suite.row(f"loop-peers-{policy}{ending}", "x", LOOP)(loop_ratio(replay, simulation=True))


READ = """
import json, sys, time, trainmaster as tm
load = tm.load_trace
begun = time.process_time()
trace = load(sys.argv[1])
print(json.dumps([time.process_time() - begun, len(trace)]))
"""


def add_reading(suite: Suite) -> None:
    """How long a large trace takes to load."""
    trace = "traces/philly_2017_attempts_152k.csv.gz"

    @suite.row("cpu-read-150k", "s", f"load_trace('${DATA_VARIABLE}/{trace}')", target=2.0)
    def reading() -> Found:
        runs = [json.loads(python(READ, data(trace))) for _ in range(5)]
        seconds = median(cpu_s * 150_000 / rows for cpu_s, rows in runs)
        return Found(seconds, f"{runs[0][1]:,} rows, scaled to 150,000; median of 5 runs")


def add_decisions(suite: Suite) -> None:
    """How long a decision takes."""
    for policy in POLICIES:
        for key in ("mean", "p99"):
            replay = _on_63(policy)
            how = f"decision_ms_{key} of {replay.how}"
            suite.row(f"decision-{key}-82k-{policy}", "ms", how)(figure(replay, f"decision_ms_{key}"))
