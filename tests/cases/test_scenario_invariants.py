"""The nine invariants: policies and accounts that break them are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from case_helpers import ONE, TWO, scene_of

from trainmaster.model.action import Kill, Start, Stop
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster
from trainmaster.model.event import Cancelled, Finished, NodeDown, Started, Stopped, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import ClusterView
from trainmaster.model.reason import Level, Reason
from trainmaster.model.units import GPU, SECOND
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.ordering import Order
from trainmaster.testing import scenario_invariants
from trainmaster.testing.scenario import check_scene
from trainmaster.testing.scenario_account import Account, InvariantError
from trainmaster.testing.scenario_model import CaseJob

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


def test_a_pending_job_without_a_reason_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_of(ONE + "expect: {at: 10, reason: {b: [the only GPU is in use, 1 of 1]}}\n", tmp_path)
    assert check_scene(scene, "fifo", "pack") == [
        "at 10 s (line 6): the reason of b is 'waits for 1 GPU; the only GPU is in use', "
        "expected '1 of 1' in it"
    ]
    monkeypatch.setattr(scenario_invariants, "reasons", lambda engine: {})
    assert check_scene(scene, "fifo", "pack") == ["I9: b waits without a reason (at 10 s)"]
    nothing = {"b": Reason(Level.POLICY, "waits although there is room")}
    monkeypatch.setattr(scenario_invariants, "reasons", lambda engine: nothing)
    assert check_scene(scene, "fifo", "pack") == ["I9: b waits although nothing holds it back (at 10 s)"]


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
