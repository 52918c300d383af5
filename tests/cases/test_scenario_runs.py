"""The runner itself: it sees what goes wrong, and says so precisely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trainmaster.model.action import Kill, Start, Stop
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import Cancelled, Finished, NodeDown, Started, Stopped, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.ordering import Order
from trainmaster.testing import scenario_expect, scenario_invariants
from trainmaster.testing.scenario import CaseResult, Scene, check_scene, load, run_case, summary
from trainmaster.testing.scenario_account import Account, InvariantError
from trainmaster.testing.scenario_model import CaseJob

TWO = "title: T\ncluster: 2 x 1\njobs:\n  a: {runs: 100}\n  b: {runs: 100}\n  c: {at: 10, runs: 100}\n"
ONE = "title: T\ncluster: 1 x 1\njobs:\n  a: {runs: 100}\n  b: {at: 10, runs: 100}\n"


def scene_of(text: str, folder: Path) -> Scene:
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    part = load(path).parts[0]
    assert isinstance(part, Scene)
    return part


# -- invariants: policies that break them ---------------------------------------------------------


class Preempts(Order):
    preemptive = True


class Bad(Policy):
    """First come first served; what it does beyond that is up to `more`."""

    name = "bad"
    preemptive = True
    knobs = ()

    def compose(self) -> None:
        self.ordering = Preempts()
        self.min_run = 0

    def plan(self, view: ClusterView) -> None:
        for members in list(view.pending_classes):
            for job in members.ordered():
                room = self.placement.find(view.capacity, members.request)
                if room is not None:
                    view.start(job, room)
        self.more(view)

    def more(self, view: ClusterView) -> None:
        raise NotImplementedError

    def first(self, view: ClusterView) -> Any:
        """The first pending job, or None."""
        heads = [members.head() for members in view.pending_classes]
        return next((head for head in heads if head is not None), None)

    def swap(self, view: ClusterView) -> None:
        """The first pending job takes the place of the first running one."""
        pending, running = self.first(view), list(view.running)
        if pending is not None and running:
            room = running[0].allocation
            view.preempt(running[0])
            view.start(pending, room)


class EvictsForNobody(Bad):
    def more(self, view: ClusterView) -> None:
        if view.now == 10 * SECOND and view.running:
            view.preempt(next(iter(view.running)))


class EvictsTooMany(Bad):
    """Two victims where one is enough; on a node the second one's GPU goes to nobody."""

    def more(self, view: ClusterView) -> None:
        pending, running = self.first(view), list(view.running)
        if pending is not None and len(running) == 2 and view.now == 10 * SECOND:
            for job in running:
                view.preempt(job)
            view.start(pending, self.placement.find(view.capacity, pending.job.request))


class FlipFlop(Bad):
    """Swaps every second."""

    def more(self, view: ClusterView) -> None:
        if self.first(view) is not None:
            if view.now > 10 * SECOND:
                self.swap(view)
            view.wake(view.now + SECOND)


class Cascades(Bad):
    """A victim takes the next one's place."""

    def more(self, view: ClusterView) -> None:
        self.swap(view)


class Counts(Bad):
    """Behaves by how many of its kind were made: a state outside the policy."""

    made: ClassVar[int] = 0
    turns: ClassVar[tuple[bool, ...]] = ()

    def compose(self) -> None:
        super().compose()
        self.waits = self.turns[Counts.made]
        Counts.made += 1

    def plan(self, view: ClusterView) -> None:
        if self.waits and view.now < 20 * SECOND:
            view.wake(20 * SECOND)
        else:
            super().plan(view)

    def more(self, view: ClusterView) -> None:
        pass


@pytest.mark.parametrize(
    ("policy", "text", "placement", "message"),
    [
        (EvictsForNobody, TWO, "pack", "I3: a evicted, and nothing was placed (at 10 s)"),
        (EvictsTooMany, TWO, "pack", "I3: b is evicted, and nobody takes its GPUs (at 10 s)"),
        (EvictsTooMany, TWO, "pool", "I4: there would have been room without evicting a (at 10 s)"),
        (FlipFlop, ONE, "pack", "I5: a is evicted again although nothing happened in between"),
        (Cascades, TWO, "pack", "I6: b evicted because a victim came back (at 10 s)"),
    ],
)
def test_an_eviction_that_breaks_an_invariant_is_seen(
    policy: type[Policy], text: str, placement: str, message: str, tmp_path: Path
) -> None:
    assert check_scene(scene_of(text, tmp_path), policy, placement)[-1].startswith(message)


def test_a_victim_that_only_helped_with_room_elsewhere_is_superfluous(tmp_path: Path) -> None:
    """c takes a's GPU although node-1 is free: the eviction was useless."""

    class EvictsBesideRoom(Bad):
        def plan(self, view: ClusterView) -> None:
            if view.now < 10 * SECOND:
                super().plan(view)
            else:
                self.swap(view)

        def more(self, view: ClusterView) -> None:
            pass

    text = "title: T\ncluster: 2 x 1\njobs:\n  a: {runs: 100}\n  c: {at: 10, runs: 100}\n"
    (message,) = check_scene(scene_of(text, tmp_path), EvictsBesideRoom, "pack")
    assert message == "I4: c would have found room without evicting a (at 10 s)"


def test_who_lost_its_node_may_evict_at_that_very_instant(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 2 x 1\njobs:\n  high: {runs: 300, priority: 1}\n  low: {at: 1, runs: 300}\n"
        "steps: [{at: 100, fail: node-0}, {at: 200, return: node-0}]\n"
        "expect: [{at: 100, running: high, pending: low, nodes: {high: node-1}, evictions: {low: 1}}]\n"
    )
    assert check_scene(scene_of(text, tmp_path), "priority", "pack") == []


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ((False, True, False), "I8: two plays of the same input, step by step in turn, differ"),
        ((False, False, True), "I7: replayed from the log, at 0 s the engine asks for [Wake("),
    ],
)
def test_a_state_outside_the_policy_is_seen(turns: tuple[bool, ...], message: str, tmp_path: Path) -> None:
    Counts.made, Counts.turns = 0, turns
    found = check_scene(scene_of(ONE, tmp_path), Counts, "pack")
    assert found and found[0].startswith(message)


def test_a_pending_job_without_a_reason_is_seen_once_reasons_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (scenario_invariants, scenario_expect):
        monkeypatch.setattr(module, "existing", lambda: ("reasons",))
    scene = scene_of(ONE + "expect: {at: 10, reason: {b: [no GPU, 1 of 1]}}\n", tmp_path)
    monkeypatch.setattr(scenario_invariants, "reason", lambda engine, job: " ")
    assert check_scene(scene, "fifo", "pack") == ["I9: b waits without a reason (at 10 s)"]
    for module in (scenario_invariants, scenario_expect):
        monkeypatch.setattr(module, "reason", lambda engine, job: f"{job}: no GPU is free")
    assert check_scene(scene, "fifo", "pack") == [
        "at 10 s (line 6): the reason of b is 'b: no GPU is free', expected '1 of 1' in it"
    ]


def test_a_policy_that_never_rests_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainmaster.testing import scenario_play

    class Wakes(Bad):
        def more(self, view: ClusterView) -> None:
            view.wake(view.now + 1)

    monkeypatch.setattr(scenario_play, "MAX_INSTANTS", 50)
    (message,) = check_scene(scene_of(ONE, tmp_path), Wakes, "pack")
    assert message == "I5: no end after 50 instants: decisions never come to rest"


# -- invariants: an account that believes nothing ---------------------------------------------------


def account(*jobs: CaseJob, nodes: int = 2, gpus: int = 2) -> Account:
    made = Account(Cluster.homogeneous(nodes, gpus), {job.name: job for job in jobs})
    made.happen(0, [Submitted(Job(job.name, row, 0, Request(job.milli))) for row, job in enumerate(jobs)])
    return made


def on(*shares: tuple[int, int, int]) -> Allocation:
    return Allocation.of([Share(*share) for share in shares])


def test_a_gpu_used_twice_is_seen() -> None:
    books = account(CaseJob("a", "a", gpus=GPU), CaseJob("b", "b", gpus=600), CaseJob("c", "c", gpus=400))
    books.carry_out(0, [Start("b", on((1, 0b10, 600))), Start("c", on((1, 0b10, 400)))])
    with pytest.raises(InvariantError, match="I1: GPU 1 of node-1 is used 2000 / 1000"):
        books.carry_out(0, [Start("a", on((1, 0b10, GPU)))])


def test_a_gpu_that_a_stopping_job_still_holds_is_not_free() -> None:
    books = account(CaseJob("a", "a", gpus=GPU), CaseJob("b", "b", gpus=GPU))
    books.carry_out(0, [Start("a", on((0, 1, GPU)))])
    books.happen(0, [Started("a")])
    books.carry_out(5, [Stop("a")])
    assert (books.state["a"], books.free("node-0"), books.evictions["a"]) == ("stopping", GPU, 1)
    with pytest.raises(InvariantError, match="I1: GPU 0 of node-0"):
        books.carry_out(5, [Start("b", on((0, 1, GPU)))])


def test_a_gpu_that_does_not_exist_is_seen() -> None:
    books = account(CaseJob("a", "a", gpus=GPU))
    with pytest.raises(InvariantError, match="I1: node-0 has no GPU 2"):
        books.carry_out(0, [Start("a", on((0, 0b100, GPU)))])


def test_a_node_that_is_down_takes_nobody() -> None:
    books = account(CaseJob("a", "a", gpus=GPU))
    books.happen(0, [NodeDown(0)])
    assert books.free() == 2 * GPU
    with pytest.raises(InvariantError, match="I1: a is started on node-0, which is down"):
        books.carry_out(0, [Start("a", on((0, 1, GPU)))])


def test_a_pool_that_is_used_beyond_its_size_is_seen() -> None:
    made = Account(Cluster.homogeneous(2, 1).as_pool(), {"a": CaseJob("a", "a", gpus=3 * GPU)})
    made.happen(0, [Submitted(Job("a", 0, 0, Request(3 * GPU)))])
    with pytest.raises(InvariantError, match="I1: 3 of 2 GPUs are in use"):
        made.carry_out(0, [Start("a", on((0, 0, 3 * GPU)))])


def test_a_job_that_is_started_twice_is_seen() -> None:
    books = account(CaseJob("a", "a", gpus=GPU))
    books.carry_out(0, [Start("a", on((0, 1, GPU)))])
    with pytest.raises(InvariantError, match="I2: a is started although it is starting"):
        books.carry_out(0, [Start("a", on((1, 1, GPU)))])


def test_a_start_that_was_overtaken_by_a_stop_changes_nothing() -> None:
    books = account(CaseJob("a", "a", gpus=GPU))
    books.carry_out(0, [Start("a", on((0, 1, GPU))), Stop("a")])
    books.happen(1, [Started("a")])
    assert books.state["a"] == "stopping"


def test_a_gang_that_is_not_whole_is_seen() -> None:
    books = account(CaseJob("a", "a", pods=(4, GPU)), CaseJob("b", "b", pods=(2, 2 * GPU)))
    with pytest.raises(InvariantError, match="I2: a is started on 3 GPUs, its gang needs 4"):
        books.carry_out(0, [Start("a", on((0, 0b11, 2 * GPU), (1, 0b1, GPU)))])
    with pytest.raises(InvariantError, match="I2: a pod of b spans node-0 and others"):
        books.carry_out(0, [Start("b", on((0, 0b1, GPU), (1, 0b11, 3 * GPU)))])


def test_an_elastic_gang_is_whole_from_its_minimum_on() -> None:
    books = account(CaseJob("a", "a", pods=(4, GPU), extra={"min_pods": 2}))
    books.carry_out(0, [Start("a", on((0, 0b11, 2 * GPU)))])
    assert not books.is_in("a", "partly")
    books.held["a"] = on((0, 0b1, GPU))
    assert books.is_in("a", "partly") and books.is_in("a", "holding")


def test_a_withdrawn_job_ends_as_cancelled() -> None:
    books = account(CaseJob("a", "a", gpus=GPU), CaseJob("b", "b", gpus=GPU), CaseJob("c", "c", gpus=GPU))
    books.carry_out(0, [Start("a", on((0, 1, GPU))), Start("c", on((1, 1, GPU)))])
    books.happen(1, [Cancelled("b"), Cancelled("a")])
    books.carry_out(1, [Kill("a")])
    books.happen(2, [Stopped("a"), Finished("c")])
    assert books.state == {"a": "cancelled", "b": "cancelled", "c": "finished"}
    assert books.ended_at == {"b": 1, "a": 2, "c": 2} and books.evictions["a"] == 0


# -- expectations ------------------------------------------------------------------------------------

WRONG = """\
title: T
policies: priority
cluster: 2 x 2
queues: {red: {weight: 2}, blue: {}}
jobs:
  a: {gpus: 2, queue: red, runs: 200}
  b: {at: 5, gpus: 2, queue: blue, runs: 300}
  c: {at: 100, gpus: 2, queue: red, runs: 50, priority: 1}
expect:
  - at: 10
    pending: [a, b]
    partly: a
    nodes: {a: node-1}
    together: [a, b, c]
    apart: [a, c]
    gpus: {a: "> 2"}
    free: 1
    allocated: {red: 4}
    count: {running: 1}
    evictions: 1
  - {at: 100, free: {node-1: 2}, evictions: {a: 1}}
finally:
  running: a
  start: {a: 1, c: "< 100"}
  finish: {a: 7}
  jct: {c: ">= 51"}
  makespan: 1
  starts: [c, a]
  evicted: []
  evicted_queues: red
never:
  - {a: running, c: unsubmitted}
"""


def test_every_difference_is_told(tmp_path: Path) -> None:
    found = check_scene(scene_of(WRONG, tmp_path), "priority", "pack")
    assert found == [
        "at 0 s: a is running while c is unsubmitted, which must never be",
        "at 10 s (line 10): a is running, expected pending",
        "at 10 s (line 10): b is running, expected pending",
        "at 10 s (line 10): a is running with 2 GPUs, expected partly",
        "at 10 s (line 10): a sits on node-0, expected node-1",
        "at 10 s (line 10): b sits on node-1, a on node-0",
        "at 10 s (line 10): c sits on no node (unsubmitted), a on node-0",
        "at 10 s (line 10): c sits on no node (unsubmitted)",
        "at 10 s (line 10): a holds 2 GPUs, expected > 2 GPUs",
        "at 10 s (line 10): free are 0 GPUs, expected 1 GPUs",
        "at 10 s (line 10): queue red holds 2 GPUs, expected 4 GPUs",
        "at 10 s (line 10): jobs running: 2, expected 1",
        "at 10 s (line 10): evictions: 0, expected 1",
        "at 100 s (line 21): free on node-1 are 0 GPUs, expected 2 GPUs",
        "at 100 s (line 21): evictions of a: 0, expected 1",
        "at 100 s (line 21): evictions of b: 1, expected 0",
        "at the end (line 23): a is finished, expected running",
        "at the end (line 23): a started at 0 s, expected 1 s",
        "at the end (line 23): c started at 100 s, expected < 100 s",
        "at the end (line 23): a ended at 200 s, expected 7 s",
        "at the end (line 23): the JCT of c is 50 s, expected >= 51 s",
        "at the end (line 23): makespan: 355 s, expected 1 s",
        "at the end (line 23): started in the order a, c, expected c, a",
        "at the end (line 23): evicted in the order b, expected ",
        "at the end (line 23): evicted from the queues blue, expected red",
    ]


def test_an_instant_is_looked_at_once_all_of_it_has_happened(tmp_path: Path) -> None:
    text = ONE + "expect:\n- {at: 99.999999999, running: a}\n- {at: 100, finished: a, running: b}\n"
    assert (
        check_scene(scene_of(text + "- {at: 5000, ended: [a, b], free: 1}\n", tmp_path), "fifo", "pack") == []
    )


def test_what_passes_within_an_instant_is_no_situation(tmp_path: Path) -> None:
    """a is asked to stop, stops, and b starts: all at 100."""
    text = ONE.replace("at: 10,", "at: 100, priority: 1,").replace("a: {runs: 100}", "a: {runs: 300}")
    never = "never: [{a: stopping, b: pending}, {a: running, b: pending}]\n"
    assert check_scene(scene_of(text + never, tmp_path), "priority", "pack") == []


def test_the_last_instant_is_played(tmp_path: Path) -> None:
    text = ONE + "until: 100\nexpect: [{at: 100, finished: a, running: b}]\n"
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_a_moment_before_the_first_job(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 1\njobs: {a: {at: 50, runs: 1}}\n"
        "expect: [{at: 10, unsubmitted: a, free: 1}]\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_a_job_that_never_ends_is_a_difference_unless_the_case_says_so(tmp_path: Path) -> None:
    text = "title: T\ncluster: 1 x 1\njobs: {a: {runs: 1, gpus: 2}}\n"
    late = ["at the end: a never ended, and nothing more happens"]
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == late
    assert check_scene(scene_of(text + "finally: {pending: a}\n", tmp_path), "fifo", "pack") == []
    assert check_scene(scene_of(text + "until: 5\n", tmp_path), "fifo", "pack") == []
    wrong = check_scene(scene_of(text + "finally: {start: {a: 0}, jct: {a: 1}}\n", tmp_path), "fifo", "pack")
    assert wrong == [
        "at the end (line 4): a never started, expected 0 s",
        "at the end (line 4): a never ended, expected a JCT of 1 s",
        *late,
    ]


def test_withdrawing_what_has_ended_is_a_fault_of_the_case(tmp_path: Path) -> None:
    text = ONE + "steps: [{at: 100, cancel: a}]\n"
    assert (
        check_scene(scene_of(text, tmp_path), "fifo", "pack")[-1] == "a can't be cancelled at 100 s: finished"
    )


# -- settings that reach the engine ---------------------------------------------------------------


def test_estimates_and_limits_are_what_policies_see(tmp_path: Path) -> None:
    jobs = (
        "title: T\ncluster: 1 x 1\n"
        "jobs:\n  x: {runs: 5}\n  a: {runs: 10, KEY: 90}\n  b: {runs: 20, KEY: 30}\n"
    )
    order = "finally: {starts: [b, a]}\n"
    assert check_scene(scene_of(jobs.replace("KEY", "estimate") + order, tmp_path), "sjf", "pack") == []
    declared = jobs.replace("KEY", "limit") + "predictor: declared\n" + order
    assert check_scene(scene_of(declared, tmp_path), "sjf", "pack") == []
    wrong = check_scene(scene_of(jobs.replace("KEY", "limit") + order, tmp_path), "sjf", "pack")
    assert wrong == ["at the end (line 7): started in the order a, b, expected b, a"]


def test_weights_of_queues_reach_the_policy(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 4\nqueues: {red: {weight: 3}, blue: {}}\njobs:\n"
        "  r: {count: 4, queue: red, runs: 10}\n  b: {count: 4, queue: blue, runs: 10}\n"
        "expect: [{at: 0, allocated: {red: 3, blue: 1}}]\n"
    )
    assert check_scene(scene_of(text, tmp_path), "drf", "pack") == []


def test_speed_by_type_and_costs(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 1 x 1 B\njobs: {a: {runs: 100, speed: {B: 4}}}\ncosts: {start: 7}\n"
        "finally: {finish: {a: 32}}\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "pack") == []


def test_relax_lets_a_gang_span_nodes(tmp_path: Path) -> None:
    text = (
        "title: T\ncluster: 2 x 2\njobs:\n  l: {count: 2, runs: 100}\n"
        "  h: {count: 2, at: 1, gpus: 1, runs: 9}\n"
        "  g: {at: 2, gpus: 2, runs: 5}\nrelax: 3\nplacement: spread\nfinally: {start: {g: 10}}\n"
    )
    assert check_scene(scene_of(text, tmp_path), "fifo", "spread") == []


# -- results -------------------------------------------------------------------------------------


def result_of(text: str, folder: Path) -> CaseResult:
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    return run_case(load(path))


def test_not_yet_is_never_passed(tmp_path: Path) -> None:
    late = result_of(ONE + "steps: [{at: 5, drain: node-0}]\n", tmp_path)
    assert (late.status, late.needs, late.tried) == ("not yet", ["drain"], 0)
    partly = result_of(ONE + "policies: fifo\nexpect: [{at: 10, pending: b, reason: {b: x}}]\n", tmp_path)
    assert (partly.status, partly.needs, partly.tried) == ("not yet", ["reasons"], 1)
    wrong = result_of(ONE + "policies: fifo\nexpect: [{at: 10, running: b, reason: {b: x}}]\n", tmp_path)
    assert wrong.status == "failed"
    good = result_of(ONE, tmp_path)
    assert summary([late, partly, wrong, good]) == "1 of 4 passed; 1 failed; 2 not yet (drain 1, reasons 1)"


def test_features_that_no_policy_has_together(tmp_path: Path) -> None:
    result = result_of(ONE + "needs: [fair-share, rounds, reservation, priorities]\n", tmp_path)
    assert result.status == "not yet"
    assert {"fair-share", "priorities"} <= set(result.needs)


def test_a_reader_that_says_something_else(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: reader\nread: week.csv\nfiles:\n"
        "  week.csv: |\n    job_id,submit_s,duration_s,num_gpus\n"
        "    a,0,60,2\n    b,0,-1,2\n"
        "expect: {jobs: 2, gpus: {a: 1, z: 1}, runs: {a: 1h}, "
        "dropped: {zero_gpus: 1}, noted: {}, says: [sorry]}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    assert run.differences[:6] == (
        "jobs read: 1, expected 2",
        "a asks for 2 GPUs, expected 1 GPUs",
        "there is no job 'z'",
        "a runs for 60 s, expected 3600 s",
        "dropped as duration_not_positive: 1, expected 0",
        "dropped as zero_gpus: 0, expected 1",
    )
    assert run.differences[6].startswith("the reader doesn't say 'sorry', but ")
    (run,) = result_of(text.replace("num_gpus", "gpus!"), tmp_path).runs
    assert run.differences[0].startswith("week.csv") and len(run.differences) == 1


def test_a_command_that_differs_or_fails(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: process\nrun: trainmaster trace info nothing.csv\nfiles: {a.csv: x}\n"
        "environments: [{A: 1}, {A: 2}]\n"
        "expect: {same: [out.txt, stdout], contains: {stderr: [no such, file]}}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    assert len(run.differences) >= 3
    assert run.differences[0].startswith("run 1: exit code 2, expected 0 (trainmaster: nothing.csv")
    assert "out.txt is missing after run 1" in run.differences
    (run,) = result_of(text.replace("expect: {same: [out.txt, stdout],", "expect: {exit: 2,"), tmp_path).runs
    assert not any("exit code" in difference for difference in run.differences)


def test_bytes_that_differ(tmp_path: Path) -> None:
    text = (
        "title: T\nkind: process\nrun: trainmaster --help\n"
        "environments: [{COLUMNS: 60}, {COLUMNS: 120}]\nexpect: {same: [stdout], contains: {stdout: case}}\n"
    )
    (run,) = result_of(text, tmp_path).runs
    (difference,) = run.differences
    assert difference.startswith("stdout differs between run 1 and run 2, first in line ")


# -- the command -----------------------------------------------------------------------------------


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", "case", *words],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_prints_each_case_and_the_sum(tmp_path: Path) -> None:
    (tmp_path / "1-good.yaml").write_text("number: 1\n" + ONE)
    (tmp_path / "mine.yaml").write_text(ONE + "policies: fifo\nfinally: {start: {b: 10}}\n")
    (tmp_path / "9-later.yaml").write_text("number: 9\n" + ONE + "steps: [{at: 5, drain: node-0}]\n")
    done = command(tmp_path, ".")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "   1  pass  T",
        "   9        T  not yet: needs drain",
        "mine  FAIL  T",
        "            fifo, pack: at the end (line 7): b started at 100 s, expected 10 s",
        "",
        "1 of 3 passed; 1 failed; 1 not yet (drain 1)",
    ]
    assert command(tmp_path, "1-good.yaml", "9-later.yaml").returncode == 0, "not yet is no failure"


def test_the_command_gives_json(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(ONE + "policies: fifo\nfinally: {start: {b: 10}}\n")
    done = command(tmp_path, "mine.yaml", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["summary"] == "0 of 1 passed; 1 failed"
    (case,) = document["cases"]
    assert (case["number"], case["status"], case["file"]) == (None, "failed", "mine.yaml")
    assert case["runs"][0]["policy"] == "fifo"
    assert case["runs"][0]["differences"] == ["at the end (line 7): b started at 100 s, expected 10 s"]


def test_the_command_tries_one_policy_where_it_claims_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ONE + "needs: preemption\n")
    (tmp_path / "b.yaml").write_text(ONE)
    done = command(tmp_path, ".", "--policy", "fifo", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert case["file"] == "b.yaml" and [run["policy"] for run in case["runs"]] == ["fifo"]
    refused = command(tmp_path, "a.yaml", "--policy", "fifo")
    assert refused.returncode == 2 and "no case is for policy fifo" in refused.stderr


def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("title: T\ncluster: 1 x 1\njobs: {a: {rums: 1}}\n")
    done = command(tmp_path, "bad.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "trainmaster: bad.yaml, row 3, column jobs.a.rums: unknown key 'rums' (did you mean 'runs'?)\n"
    )
