"""Who is next while nobody gives way: fifo, backfill, sjf, priority and drf without preemption."""

from __future__ import annotations

import pytest
from policy_helpers import Fate, ask, fates


class TestFifo:
    def test_the_first_that_cannot_start_blocks_all_behind_it(self) -> None:
        jobs = {"a": ask(0, 100, 3), "big": ask(1, 10, 4), "small": ask(2, 10, 1)}
        assert fates("fifo", jobs, gpus=4) == {
            "a": Fate(0, 100),
            "big": Fate(100, 110),
            "small": Fate(110, 120),
        }

    def test_greedy_lets_anything_pass(self) -> None:
        jobs = {"a": ask(0, 100, 3), "big": ask(1, 10, 4), "small": ask(2, 150, 1)}
        assert fates("fifo(backfill=greedy)", jobs, gpus=4)["big"] == Fate(152, 162)


def stream() -> dict[str, tuple[float, float, float]]:
    """Four jobs end at 10, 12, 14, 16; a gang of four; a stream of small ones (scenario 35)."""
    running = {f"r{end}": (0.0, float(end), 1.0) for end in (10, 12, 14, 16)}
    small = {f"s{at}": (float(at), 8.0, 1.0) for at in range(2, 42, 2)}
    return {**running, "big": (1.0, 20.0, 4.0), **small}


class TestEasy:
    @pytest.mark.parametrize(("placement", "nodes"), [("pool", 4), ("pack", 4)])
    def test_the_first_blocked_job_starts_when_it_was_promised(self, placement: str, nodes: int) -> None:
        jobs = {name: ask(*row) for name, row in stream().items()}
        found = fates("fifo(backfill=easy)", jobs, nodes=nodes, placement=placement)
        assert found["big"] == Fate(16, 36)

    def test_greedy_starves_it(self) -> None:
        jobs = {name: ask(*row) for name, row in stream().items()}
        assert fates("fifo(backfill=greedy)", jobs, nodes=4)["big"] == Fate(56, 76)

    def test_what_ends_in_time_may_pass(self) -> None:
        jobs = {name: ask(*row) for name, row in stream().items()}
        jobs["quick"] = ask(9, 4, 1)
        found = fates("fifo(backfill=easy)", jobs, nodes=4)
        assert (found["quick"], found["big"]) == (Fate(10, 14), Fate(16, 36))

    def test_what_needs_only_left_over_gpus_may_pass(self) -> None:
        jobs = {"a": ask(0, 10, 3), "head": ask(1, 10, 3), "long": ask(2, 1000, 1)}
        found = fates("fifo(backfill=easy)", jobs, gpus=4)
        assert (found["head"], found["long"]) == (Fate(10, 20), Fate(2, 1002))

    def test_all_that_end_at_the_promised_instant_are_counted(self) -> None:
        """Three GPUs would be enough for the head at 100, but four are free then: one is left over."""
        jobs = {"a": ask(0, 100, 2), "b": ask(0, 100, 1), "head": ask(1, 10, 3), "long": ask(2, 500, 1)}
        found = fates("fifo(backfill=easy)", jobs, gpus=4)
        assert (found["long"].start, found["head"].start) == (2, 100)

    def test_left_over_gpus_are_counted_not_named(self) -> None:
        """On one node of 8, 4 are idle until 100, then 8; the head needs 6: 2 are left over, whichever."""
        jobs = {"a": ask(0, 100, 4), "head": ask(1, 10, 6), "b": ask(2, 500, 1), "c": ask(3, 500, 1)}
        jobs["one too many"] = ask(4, 500, 1)
        found = fates("fifo(backfill=easy)", jobs, gpus=8)
        assert (found["head"], found["b"], found["c"]) == (Fate(100, 110), Fate(2, 502), Fate(3, 503))
        assert found["one too many"].start == 110

    def test_a_wrong_estimate_delays_the_head_by_no_more_than_its_error(self) -> None:
        jobs = {"a": ask(0, 100, 2, declared=50 * 10**9), "head": ask(1, 10, 2)}
        assert fates("fifo(backfill=easy)", jobs, gpus=2, predictor="declared")["head"] == Fate(100, 110)

    def test_jobs_that_accept_any_nodes_may_backfill_on_them(self) -> None:
        """One GPU is free on each node; after 50 s `wide` accepts that, and ends before the head starts."""
        jobs = {
            "a": ask(0, 200, 3),
            "b": ask(0, 200, 3),
            "head": ask(1, 10, 8),
            "wide": ask(2, 20, 2),
        }
        found = fates("fifo(backfill=easy)", jobs, nodes=2, gpus=4, relax_s=50)
        assert found["wide"] == Fate(52, 72)
        assert fates(
            "fifo(backfill=conservative)",
            {"a": ask(0, 200, 3), "b": ask(0, 200, 3), "wide": ask(2, 20, 2)},
            nodes=2,
            gpus=4,
            relax_s=50,
        )["wide"] == Fate(52, 72)


class TestConservative:
    def test_no_waiting_job_is_delayed(self) -> None:
        """Under easy `late` delays `second`, which has no reservation; under conservative it may not."""
        jobs = {
            "a": (0, 10, 2),
            "first": (1, 10, 4),
            "second": (2, 10, 3),
            "late": (3, 28, 1),
        }
        conservative = fates("fifo(backfill=conservative)", {n: ask(*j) for n, j in jobs.items()}, gpus=4)
        assert conservative == {
            "a": Fate(0, 10),
            "first": Fate(10, 20),
            "second": Fate(20, 30),
            "late": Fate(20, 48),
        }

    def test_a_hole_before_a_reservation_is_used(self) -> None:
        jobs = {"a": ask(0, 10, 3), "first": ask(1, 10, 4), "short": ask(2, 8, 1), "long": ask(3, 9, 1)}
        found = fates("fifo(backfill=conservative)", jobs, gpus=4)
        assert (found["short"], found["first"], found["long"]) == (Fate(2, 10), Fate(10, 20), Fate(20, 29))

    def test_jobs_beyond_the_depth_wait(self) -> None:
        jobs = {"a": ask(0, 10, 3), "first": ask(1, 10, 4), "short": ask(2, 5, 1)}
        assert fates("fifo(backfill=conservative,depth=1)", jobs, gpus=4)["short"].start == 20
        jobs = {"a": ask(0, 10, 3), "first": ask(1, 10, 4), "short": ask(2, 5, 1)}
        assert fates("fifo(backfill=conservative,depth=2)", jobs, gpus=4)["short"].start == 2


class TestWaves:
    """4 nodes, 17 jobs of 20 s (scenario 36)."""

    ARRIVED = (1, 1, 2, *(1,) * 8, 4, 3, 2, 2, 2, 3)
    LARGEST_FIRST = (4, 3, 3, 2, 2, 2, 2, *(1,) * 10)

    @pytest.mark.parametrize(
        ("policy", "sizes", "waves"),
        [
            ("fifo", ARRIVED, 8),
            ("fifo(backfill=easy)", ARRIVED, 8),
            ("fifo", LARGEST_FIRST, 8),
            ("fifo(backfill=easy)", LARGEST_FIRST, 7),
        ],
    )
    def test_number(self, policy: str, sizes: tuple[int, ...], waves: int) -> None:
        found = fates(policy, {f"j{row}": ask(0, 20, size) for row, size in enumerate(sizes)}, nodes=4)
        assert max(fate.finish for fate in found.values()) == 20 * waves


class TestSjf:
    def test_the_shortest_first_and_nobody_gives_way(self) -> None:
        jobs = {"a": ask(0, 100), "long": ask(1, 30), "short": ask(2, 10), "mid": ask(3, 20)}
        assert fates("sjf", jobs) == {
            "a": Fate(0, 100),
            "long": Fate(130, 160),
            "short": Fate(100, 110),
            "mid": Fate(110, 130),
        }

    def test_whatever_fits_starts(self) -> None:
        jobs = {"a": ask(0, 100, 3), "short": ask(1, 10, 2), "long": ask(2, 500, 1)}
        assert fates("sjf", jobs, gpus=4)["long"] == Fate(2, 502)

    def test_equal_jobs_in_order_of_arrival(self) -> None:
        found = fates("sjf", {name: ask(0, 10) for name in "cab"})
        assert [found[name].start for name in "cab"] == [0, 10, 20]


class TestPriorityWithoutPreemption:
    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_higher_first_then_earlier(self, placement: str) -> None:
        jobs = {
            "a": ask(0, 100),
            "low": ask(1, 10, priority=0),
            "high": ask(2, 10, priority=2),
            "high too": ask(3, 10, priority=2),
            "mid": ask(4, 10, priority=1),
        }
        found = fates("priority(preempt=false)", jobs, placement=placement)
        assert [found[n].start for n in ("high", "high too", "mid", "low")] == [100, 110, 120, 130]

    @pytest.mark.parametrize(("ageing_s", "first"), [(50, "old"), (70, "new"), (0, "new")])
    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_waiting_counts_as_priority(self, ageing_s: int, first: str, placement: str) -> None:
        """60 s of waiting are worth more than one priority if one is worth 50 s."""
        jobs = {"a": ask(0, 100), "old": ask(1, 10), "new": ask(61, 10, priority=1)}
        found = fates(f"priority(preempt=false,ageing_s={ageing_s})", jobs, placement=placement)
        assert found[first].start == 100


class TestSharesWithoutPreemption:
    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_tenants_take_turns(self, placement: str) -> None:
        """A B A B although all of A's jobs came first."""
        jobs = {"x": ask(0, 100, 4, tenant="x")}
        jobs |= {f"a{row}": ask(1, 10, tenant="a") for row in range(4)}
        jobs |= {f"b{row}": ask(2, 10, tenant="b") for row in range(4)}
        found = fates("drf(preempt=false)", jobs, gpus=4, placement=placement)
        started = sorted(name for name, fate in found.items() if fate.start == 100)
        assert started == ["a0", "a1", "b0", "b1"]

    def test_a_weight_is_a_larger_share_from_the_first_decision_on(self) -> None:
        jobs = {f"a{row}": ask(0, 10, tenant="a") for row in range(4)}
        jobs |= {f"b{row}": ask(0, 10, tenant="b") for row in range(4)}
        for placement in ("pack", "pool"):
            found = fates("drf(preempt=false)", dict(jobs), gpus=4, weights={"b": 3.0}, placement=placement)
            started = sorted(name for name, fate in found.items() if fate.start == 0)
            assert started == ["a0", "b0", "b1", "b2"]

    def test_three_tenants_in_turn(self) -> None:
        """A A A B B B C C C would be the order of arrival; A B C A B C A B C is fair (scenario 21)."""
        jobs = {f"{tenant}{row}": ask(0, 10, tenant=tenant) for tenant in "abc" for row in range(3)}
        found = fates("drf(preempt=false)", jobs, gpus=3)
        waves = [sorted(n for n, fate in found.items() if fate.start == at) for at in (0, 10, 20)]
        assert waves == [["a0", "b0", "c0"], ["a1", "b1", "c1"], ["a2", "b2", "c2"]]
