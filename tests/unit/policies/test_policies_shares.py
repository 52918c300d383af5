"""Fair shares: known answers, what always holds, and a division by hand, GPU by GPU."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.policies.parts.shares import FairShares, fair_shares


def flat(capacity: int, **queues: tuple[int, int, float]) -> list[int]:
    """Shares in GPUs of queues at the top, given as (guaranteed, demand, weight) in GPUs."""
    tree = QueueTree(tuple(Queue(name, guaranteed=g * 1000, weight=w) for name, (g, _, w) in queues.items()))
    shares = fair_shares(tree, {name: d * 1000 for name, (_, d, _) in queues.items()}, capacity * 1000)
    assert all(milli % 1000 == 0 for milli in shares.values())
    return [milli // 1000 for milli in shares.values()]


class TestKnownAnswers:
    def test_case_28_surplus_by_weight_beyond_guarantees(self) -> None:
        assert flat(100, q1=(10, 100, 3), q2=(10, 100, 1)) == [70, 30]
        assert flat(12, a=(4, 12, 1), b=(4, 2, 1), c=(0, 9, 2)) == [6, 2, 4]

    def test_case_27_equal_queues_share_equally(self) -> None:
        assert flat(8, alice=(2, 8, 1), bob=(2, 8, 1)) == [4, 4]

    def test_case_13_a_huge_weight_takes_no_guarantee(self) -> None:
        assert flat(4, a=(4, 4, 1), b=(0, 4, 9_999_999)) == [4, 0]
        assert flat(4, a=(0, 4, 1), b=(0, 3, 9_999_999)) == [1, 3]

    def test_case_13_a_huge_weight_rounds_nothing_away(self) -> None:
        tree = QueueTree((Queue("a"), Queue("b", weight=9_999_999)))
        ask = {"a": 10**9, "b": 10**9}
        assert fair_shares(tree, ask, 10**7) == {"a": 1, "b": 9_999_999}
        assert fair_shares(tree, ask, 3 * 10**7) == {"a": 3, "b": 29_999_997}
        assert fair_shares(tree, ask, 10) == {"a": 1, "b": 9}

    def test_case_11_zero_weights_share_what_is_left(self) -> None:
        assert flat(8, a=(0, 8, 0), b=(0, 8, 0)) == [4, 4]
        tree = QueueTree((Queue("a", weight=0), Queue("b", weight=0), Queue("c", weight=0.001)))
        assert fair_shares(tree, {"a": 8000, "b": 8000, "c": 5000}, 8000) == {"a": 1500, "b": 1500, "c": 5000}
        assert fair_shares(tree, {"a": 8000, "b": 8000, "c": 9000}, 8000) == {"a": 0, "b": 0, "c": 8000}

    def test_zero_weight_comes_after_every_priority(self) -> None:
        tree = QueueTree((Queue("a", weight=0, priority=9), Queue("b", priority=-9), Queue("c", weight=0)))
        ask = {"a": 5, "b": 5, "c": 5}
        assert fair_shares(tree, ask, 4) == {"a": 0, "b": 4, "c": 0}
        assert fair_shares(tree, ask, 8) == {"a": 3, "b": 5, "c": 0}
        assert fair_shares(tree, ask, 12) == {"a": 5, "b": 5, "c": 2}

    def test_guarantees_come_before_priority_and_priority_before_weight(self) -> None:
        tree = QueueTree(
            (Queue("urgent", priority=1), Queue("usual", weight=100), Queue("own", guaranteed=3, weight=2))
        )
        ask = {"urgent": 4, "usual": 200, "own": 50}
        assert fair_shares(tree, ask, 3) == {"urgent": 0, "usual": 0, "own": 3}
        assert fair_shares(tree, ask, 6) == {"urgent": 3, "usual": 0, "own": 3}
        assert fair_shares(tree, ask, 109) == {"urgent": 4, "usual": 100, "own": 5}

    def test_what_a_limit_forbids_goes_to_others(self) -> None:
        tree = QueueTree((Queue("a", limit=2), Queue("b")))
        assert fair_shares(tree, {"a": 8, "b": 8}, 8) == {"a": 2, "b": 6}

    def test_too_little_for_the_guarantees_is_shared_in_proportion(self) -> None:
        tree = QueueTree(
            (Queue("a", guaranteed=60, priority=5), Queue("b", guaranteed=20), Queue("c", weight=50))
        )
        ask = {"a": 99, "b": 99, "c": 99}
        assert fair_shares(tree, ask, 40) == {"a": 30, "b": 10, "c": 0}
        assert fair_shares(tree, ask | {"a": 6}, 20) == {"a": 6, "b": 14, "c": 0}

    def test_levels_of_the_tree(self) -> None:
        tree = QueueTree(
            (
                Queue("x", "lab", guaranteed=2),
                Queue("lab", guaranteed=4, limit=14),
                Queue("y", "lab"),
                Queue("ads", weight=3),
            )
        )
        # 4 to lab, 16 left: 1 part to lab, 3 to ads. Within lab 2 to x, 6 left in halves.
        assert fair_shares(tree, {"x": 50, "y": 50, "ads": 50}, 20) == {"x": 5, "lab": 8, "y": 3, "ads": 12}
        # lab's limit leaves the rest to ads.
        assert fair_shares(tree, {"x": 50, "y": 50, "ads": 50}, 90)["ads"] == 50
        assert fair_shares(tree, {"x": 50, "y": 50}, 90) == {"x": 8, "lab": 14, "y": 6, "ads": 0}
        # What nobody in lab wants is not held for lab.
        assert fair_shares(tree, {"x": 1, "ads": 50}, 20) == {"x": 1, "lab": 1, "y": 0, "ads": 19}

    def test_equal_fractions_go_by_name(self) -> None:
        tree = QueueTree((Queue("c"), Queue("a"), Queue("b")))
        assert fair_shares(tree, {"a": 9, "b": 9, "c": 9}, 8) == {"c": 2, "a": 3, "b": 3}

    def test_tenths_are_tenths(self) -> None:
        tree = QueueTree((Queue("a", weight=0.1), Queue("b", weight=0.2), Queue("c", weight=0.3)))
        assert fair_shares(tree, {"a": 99, "b": 99, "c": 99}, 6) == {"a": 1, "b": 2, "c": 3}
        # At 3 and 1 they stand equal, and the name decides; not so with the binary 0.3 and 0.1.
        tree = QueueTree((Queue("a", weight=0.3), Queue("b", weight=0.1)))
        assert fair_shares(tree, {"a": 99, "b": 99}, 5) == {"a": 4, "b": 1}

    @pytest.mark.parametrize(
        ("demand", "what"),
        [
            ({"lab": 1}, "queue lab has queues of its own: name one of x"),
            ({"y": 1}, r"there is no queue 'y'"),
            ({"x": -1}, "queue x wants -1 milli-GPUs"),
        ],
    )
    def test_demand_of_nobody_is_refused(self, demand: dict[str, int], what: str) -> None:
        with pytest.raises(InputError, match=what):
            fair_shares(QueueTree((Queue("lab"), Queue("x", "lab"))), demand, 10)

    def test_capacity_is_not_negative(self) -> None:
        assert fair_shares(QueueTree((Queue("a"),)), {"a": 5}, 0) == {"a": 0}
        with pytest.raises(InputError, match="there are -1 milli-GPUs to share"):
            fair_shares(QueueTree((Queue("a"),)), {}, -1)


@st.composite
def trees(draw: st.DrawFn, most: int = 7, gpus: int = 12) -> QueueTree:
    """Trees of any shape; a few GPUs, as milli-GPUs, so that every one of them shows."""
    queues: list[Queue] = []
    for number in range(draw(st.integers(1, most))):
        parent = draw(st.sampled_from([None, *(queue.name for queue in queues)]))
        limit = draw(st.none() | st.integers(0, gpus))
        queues.append(
            Queue(
                f"q{number}",
                parent,
                guaranteed=draw(st.integers(0, gpus // 2 if limit is None else limit)),
                limit=limit,
                weight=draw(st.sampled_from([0, 1, 1, 2, 3, 0.5, 0.1, 7, 9_999_999])),
                priority=draw(st.sampled_from([0, 0, 0, 1, -1])),
            )
        )
    return QueueTree(tuple(draw(st.permutations(queues))))


def demands(tree: QueueTree, gpus: int = 20) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({leaf.name: st.integers(0, gpus) for leaf in tree.leaves})


CAPACITY = st.integers(0, 40)


def wanted(tree: QueueTree, name: str, demand: Mapping[str, int]) -> int:
    """What a queue can use: the demand below it, cut by every limit on the way."""
    inside = tree.children(name)
    total = sum(wanted(tree, child.name, demand) for child in inside) if inside else demand.get(name, 0)
    limit = tree[name].limit
    return total if limit is None else min(total, limit)


def by_hand(tree: QueueTree, demand: Mapping[str, int], capacity: int) -> dict[str, int]:
    """One milli-GPU after the other to the sibling that has the least for its weight."""
    shares: dict[str, int] = {}

    def divide(parent: str | None, amount: int) -> None:
        siblings = tree.children(parent)
        given = dict.fromkeys((queue.name for queue in siblings), 0)
        firm = {queue.name: min(queue.guaranteed, wanted(tree, queue.name, demand)) for queue in siblings}
        scarce = sum(firm.values()) > amount
        for _ in range(amount):
            hungry = []
            for queue in siblings:
                has, base = given[queue.name], firm[queue.name]
                if has < base:
                    level = Fraction(has, queue.guaranteed) if scarce else Fraction(0)
                    hungry.append((0, 0, 0, level, queue.name))
                elif has < wanted(tree, queue.name, demand):
                    weight = Fraction(str(queue.weight or 1))
                    hungry.append((1, queue.weight == 0, -queue.priority, (has - base) / weight, queue.name))
            if not hungry:
                break
            given[min(hungry)[-1]] += 1
        for queue in siblings:
            shares[queue.name] = given[queue.name]
            divide(queue.name, given[queue.name])

    divide(None, capacity)
    return {queue.name: shares[queue.name] for queue in tree.queues}


class TestAlways:
    @settings(max_examples=400)
    @given(st.data())
    def test_equals_handing_out_one_after_the_other(self, data: st.DataObject) -> None:
        tree = data.draw(trees())
        demand, capacity = data.draw(demands(tree)), data.draw(CAPACITY)
        assert fair_shares(tree, demand, capacity) == by_hand(tree, demand, capacity)

    @given(st.data())
    def test_nothing_is_lost_and_nothing_idles_that_somebody_may_have(self, data: st.DataObject) -> None:
        tree = data.draw(trees(most=12))
        demand, capacity = data.draw(demands(tree)), data.draw(CAPACITY)
        shares = fair_shares(tree, demand, capacity)
        usable = sum(wanted(tree, queue.name, demand) for queue in tree.roots)
        assert sum(shares[queue.name] for queue in tree.roots) == min(capacity, usable)
        for queue in tree.queues:
            inside = tree.children(queue.name)
            assert 0 <= shares[queue.name] <= wanted(tree, queue.name, demand)
            if inside:
                assert shares[queue.name] == sum(shares[child.name] for child in inside)

    @given(st.data())
    def test_guarantees_hold_where_the_levels_above_can_keep_them(self, data: st.DataObject) -> None:
        tree = data.draw(trees(most=10))
        capacity = data.draw(CAPACITY)
        assume(not any("guaranteed" in warning and "but" in warning for warning in tree.warnings(capacity)))
        demand = data.draw(demands(tree))
        shares = fair_shares(tree, demand, capacity)
        for queue in tree.queues:
            assert shares[queue.name] >= min(queue.guaranteed, wanted(tree, queue.name, demand))

    @given(st.data())
    def test_nobody_gains_from_the_demand_of_others(self, data: st.DataObject) -> None:
        tree = data.draw(trees(most=10))
        demand, capacity = data.draw(demands(tree)), data.draw(CAPACITY)
        who = data.draw(st.sampled_from(tree.leaves)).name
        more = demand | {who: demand[who] + data.draw(st.integers(1, 9))}
        before, after = fair_shares(tree, demand, capacity), fair_shares(tree, more, capacity)
        own = {queue.name for queue in tree.path(who)}
        for name in before:
            assert after[name] >= before[name] if name in own else after[name] <= before[name]

    @given(st.data())
    def test_nobody_loses_when_the_cluster_grows(self, data: st.DataObject) -> None:
        tree = data.draw(trees(most=10))
        demand, capacity = data.draw(demands(tree)), data.draw(CAPACITY)
        before, after = fair_shares(tree, demand, capacity), fair_shares(tree, demand, capacity + 1)
        assert all(after[name] >= before[name] for name in before)

    @given(st.data())
    def test_the_order_of_the_tree_and_of_the_demand_is_no_matter(self, data: st.DataObject) -> None:
        tree = data.draw(trees())
        demand, capacity = data.draw(demands(tree)), data.draw(CAPACITY)
        other = QueueTree(tuple(data.draw(st.permutations(tree.queues))))
        backwards = dict(reversed(list(demand.items())))
        assert fair_shares(other, backwards, capacity) == fair_shares(tree, demand, capacity)

    @given(st.integers(0, 2**32))
    def test_many_queues_in_milli_gpus(self, seed: int) -> None:
        draw = random.Random(seed)
        weights = [draw.choice([1, 2, 0.3, 1e-6, 9_999_999, draw.uniform(0.01, 50)]) for _ in range(60)]
        tree = QueueTree(tuple(Queue(f"q{at}", weight=weight) for at, weight in enumerate(weights)))
        demand = {queue.name: draw.randrange(200_000) for queue in tree.queues}
        capacity = draw.randrange(1, sum(demand.values()))
        shares = fair_shares(tree, demand, capacity)
        assert sum(shares.values()) == capacity
        # Exactly: who still wants more stands no milli-GPU's worth below anybody else.
        exact = {queue.name: Fraction(str(queue.weight)) for queue in tree.queues}
        lowest = min((shares[name] / weight for name, weight in exact.items() if shares[name] < demand[name]))
        assert all((shares[name] - 1) / weight <= lowest for name, weight in exact.items() if shares[name])


class TestKept:
    @settings(max_examples=200)
    @given(st.data())
    def test_kept_shares_are_those_made_anew(self, data: st.DataObject) -> None:
        tree = data.draw(trees())
        capacity = data.draw(CAPACITY)
        shares = FairShares(tree, capacity)
        demand: dict[str, int] = {}
        for _ in range(data.draw(st.integers(1, 12))):
            if data.draw(st.integers(0, 5)) == 0:
                capacity = data.draw(CAPACITY)
                shares.resize(capacity)
            who = data.draw(st.sampled_from(tree.leaves)).name
            demand[who] = data.draw(st.integers(0, 20))
            shares.ask(who, demand[who])
            if data.draw(st.booleans()):
                assert shares.now == fair_shares(tree, demand, capacity)
        assert shares.now == fair_shares(tree, demand, capacity)

    def test_only_a_change_that_can_matter_divides_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        divided = []
        divide = FairShares._divide
        monkeypatch.setattr(FairShares, "_divide", lambda self: divided.append(1) or divide(self))
        shares = FairShares(QueueTree((Queue("a"), Queue("b", limit=9))), 8)
        shares.ask("a", 8)
        shares.ask("b", 8)
        assert dict(shares.now) == {"a": 4, "b": 4} and len(divided) == 1
        for milli in (9, 20, 5, 4, 9):
            shares.ask("b", milli)
            shares.resize(8)
            assert dict(shares.now) == {"a": 4, "b": 4}
            if milli == 4:
                # It has all it wants: from here on a wish for more can matter.
                assert len(divided) == 1
        assert len(divided) == 2
        shares.ask("b", 3)
        assert dict(shares.now) == {"a": 5, "b": 3} and len(divided) == 3
