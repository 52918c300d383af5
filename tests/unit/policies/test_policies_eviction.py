"""Who gives way: the fewest, weakest jobs, on the node that needs the least, and only when it helps."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_helpers import Fate, ask, fates, stopped

import trainmaster as tm
from trainmaster.core.engine import Engine
from trainmaster.model.action import Start, Stop
from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import NodeDown, Started, Submitted
from trainmaster.model.job import Job, Request
from trainmaster.model.units import SECOND
from trainmaster.policies.registry import create
from trainmaster.predict import Oracle
from trainmaster.sim.options import Costs

SRTF = "srtf(min_run_s=0)"
PRIORITY = "priority(min_run_s=0)"


class TestFewestAndWeakest:
    def test_the_weakest_on_the_node(self) -> None:
        jobs = {"mid": ask(0, 100, 2), "long": ask(0, 200, 2), "new": ask(1, 10, 2)}
        found = fates(SRTF, jobs, gpus=4)
        assert stopped(found) == ["long"]
        assert found["long"] == Fate(0, 210, 1)

    def test_a_superfluous_victim_is_spared(self) -> None:
        """Weakest first, `longest` would go, then `long`, which alone is enough."""
        jobs = {"longest": ask(0, 300, 1), "long": ask(0, 200, 3), "new": ask(1, 10, 3)}
        assert stopped(fates(SRTF, jobs, gpus=4)) == ["long"]

    def test_the_node_that_costs_the_weakest_jobs(self) -> None:
        jobs = {"a": ask(0, 150, 4), "b": ask(0, 300, 4), "c": ask(0, 200, 4), "new": ask(1, 10, 4)}
        assert stopped(fates(SRTF, jobs, nodes=3, gpus=4)) == ["b"]

    def test_idle_gpus_count(self) -> None:
        """Both nodes hold a weaker job of 2 GPUs; where one is idle besides, that is enough for 3."""
        jobs = {
            "strong": ask(0, 5, 2),
            "weak too": ask(0.1, 700, 2),
            "stays": ask(0.2, 900, 1, preemptible=False),
            "weak": ask(0.3, 800, 2),
            "new": ask(1, 10, 3),
        }
        assert stopped(fates(SRTF, jobs, nodes=2, gpus=4)) == ["weak"]

    def test_idle_and_freed_nodes_together(self) -> None:
        """2 x 1, one idle; a gang of two evicts one job and takes both (scenario 5)."""
        jobs = {"low": ask(0, 100), "high": ask(10, 20, 2, priority=5)}
        assert fates(PRIORITY, jobs, nodes=2) == {"low": Fate(0, 120, 1), "high": Fate(10, 30)}

    def test_whole_nodes_and_a_remainder(self) -> None:
        """6 GPUs on 3 x 4: one node emptied, and the weakest job elsewhere for the other two."""
        jobs = {
            "n0": ask(0, 100, 4),
            "n1 weak": ask(0, 900, 2),
            "n1 weaker": ask(0, 950, 2),
            "n2": ask(0, 500, 4),
            "new": ask(1, 10, 6),
        }
        found = fates(SRTF, jobs, nodes=3, gpus=4)
        assert (found["new"], stopped(found)) == (Fate(1, 11), ["n1 weaker", "n2"])

    def test_a_gang_over_two_nodes_frees_room_for_others(self) -> None:
        """What a victim leaves on other nodes is used in the same decision."""
        jobs = {
            "gang": ask(0, 900, 6),
            "x": ask(0, 5, 2),
            "big": ask(1, 10, 4),
            "waits": ask(1, 20, 2),
        }
        found = fates(SRTF, jobs, nodes=2, gpus=4)
        assert (found["big"].start, found["waits"].start, found["gang"].stops) == (1, 1, 1)

    def test_what_an_eviction_leaves_over_is_used_at_once(self) -> None:
        jobs = {"victim": ask(0, 900, 4), "one": ask(1, 10, 3), "two": ask(2, 20, 1)}
        found = fates(SRTF, jobs, gpus=4)
        assert (found["one"].start, found["two"].start) == (1, 2)

    def test_left_over_by_somebody_later_in_the_queue_too(self) -> None:
        """`old` may not displace its equal, but what `high` doesn't need of it is free."""
        jobs = {"low": ask(0, 1000, 4), "old": ask(10, 50, 1), "high": ask(200, 100, 2, priority=1)}
        found = fates("priority(min_run_s=0,ageing_s=1)", jobs, gpus=4)
        assert (found["high"].start, found["old"].start) == (200, 200)

    def test_pods_go_where_the_weakest_jobs_are(self) -> None:
        jobs = {
            "a": ask(0, 300, 2),
            "b": ask(0, 200, 2),
            "c": ask(0, 900, 2),
            "d": ask(0, 800, 2),
            "gang": ask(1, 10, 4, pods=2),
        }
        found = fates(SRTF, jobs, nodes=2, gpus=4)
        assert stopped(found) == ["c", "d"]
        assert found["gang"].start == 1

    def test_a_pod_is_not_cut_for_the_sake_of_an_eviction(self) -> None:
        """One GPU could be freed on each node, but no node can be freed for a pod of two (scenario 18)."""
        jobs = {
            "a": ask(0, 5, 1),
            "b": ask(0, 500, 1),
            "c": ask(0.5, 5, 1),
            "d": ask(0.5, 300, 1),
            "gang": ask(1, 20, 2, pods=1),
        }
        found = fates(SRTF, jobs, nodes=2, gpus=2)
        assert (stopped(found), found["gang"].start) == (["b"], 5)

    def test_a_victim_that_a_later_one_makes_needless_is_spared(self) -> None:
        """x takes the place of `small`; then y needs that of `big`, which has room for both."""
        jobs = {
            "big": ask(0, 10_000, 4),
            "small": ask(1, 20_000, 2),
            "x": ask(1000, 10, 2),
            "y": ask(1000, 10, 2),
        }
        found = fates(SRTF, jobs, gpus=6)
        assert stopped(found) == ["big"]
        assert (found["x"].start, found["y"].start) == (1000, 1000)

    def test_uneven_nodes_make_room_for_a_gang_of_several(self) -> None:
        cluster = Cluster((Node("n0", 8), Node("n1", 4), Node("n2", 4)))
        jobs = {"long": ask(0, 1_000_000, 4), "gang": ask(1000, 3600, 16)}
        found = fates(SRTF, jobs, cluster=cluster)
        assert (found["gang"].start, found["long"].stops) == (1000, 1)

    def test_spread_stops_the_weakest_wherever_they_are(self) -> None:
        jobs = {
            "a": ask(0, 5000),
            "b": ask(0, 5000),
            "c": ask(0, 1_000_000),
            "d": ask(0, 1_000_000),
            "wide": ask(1000, 4000, 2),
        }
        found = fates(SRTF, jobs, nodes=2, gpus=2, placement="spread")
        assert (stopped(found), found["wide"].start) == (["c", "d"], 1000)


class TestOnlyWhenItHelps:
    def test_nobody_is_stopped_for_a_job_that_finds_no_room_even_then(self) -> None:
        """4 x 8, six high and two low 1-GPU jobs on each; H asks for 8 (scenario 18)."""
        jobs = {}
        for node in range(4):
            jobs |= {f"high{node}{row}": ask(node, 1000, priority=5) for row in range(6)}
            jobs |= {f"low{node}{row}": ask(node, 1000, priority=0) for row in range(2)}
        jobs["H"] = ask(10, 50, 8, priority=5)
        found = fates(PRIORITY, jobs, nodes=4, gpus=8)
        assert stopped(found) == []
        assert found["H"].start == 1000, "when the first node is empty"
        jobs = {name: ask(job.submit, job.duration, job.gpus, **job.more) for name, job in jobs.items()}
        jobs["h"] = ask(20, 50, 1, priority=5)
        found = fates(PRIORITY, jobs, nodes=4, gpus=8)
        assert len(stopped(found)) == 1 and stopped(found)[0].startswith("low"), "exactly one"
        assert found["h"] == Fate(20, 70)

    def test_nobody_is_stopped_for_a_type_that_would_not_get_free(self) -> None:
        """Weaker jobs run on X only; Y is full of stronger ones (scenario 17)."""
        cluster = tm.Cluster((Node("x0", 1, "X"), Node("x1", 1, "X"), Node("y0", 1, "Y")))
        jobs = {
            "low0": ask(0, 900, gpu_types=("X",)),
            "low1": ask(0, 900, gpu_types=("X",)),
            "top": ask(0, 300, priority=9, gpu_types=("Y",)),
            "H1": ask(10, 50, priority=5, gpu_types=("Y",)),
            "H2": ask(20, 50, priority=5, gpu_types=("X",)),
        }
        found = fates(PRIORITY, jobs, cluster=cluster)
        assert (found["H1"].start, found["H2"].start) == (300, 20)
        assert len(stopped(found)) == 1

    def test_equal_jobs_do_not_displace_each_other(self) -> None:
        """12 slots, 24 equal jobs: 12, then the other 12 (scenario 23)."""
        for policy in ("priority", "srtf", "srsf", "las", "drf"):
            found = fates(f"{policy}(min_run_s=0)", {f"j{row}": ask(0, 100) for row in range(24)}, gpus=12)
            assert stopped(found) == []
            assert [fate.start for fate in found.values()] == [0] * 12 + [100] * 12

    def test_fixed_jobs_stay(self) -> None:
        jobs = {"fixed": ask(0, 100, priority=0, preemptible=False), "H": ask(1, 10, priority=9)}
        for placement in ("pack", "pool"):
            found = fates(PRIORITY, dict(jobs), placement=placement)
            assert found["H"] == Fate(100, 110)
            jobs["fixed"] = ask(0, 100, priority=0, preemptible=False)

    def test_when_all_nodes_are_down_there_is_nobody_to_stop(self) -> None:
        policy = create(SRTF)
        engine = Engine(Cluster.homogeneous(1, 2), policy, Oracle(lambda job: SECOND), validate=True)
        engine.handle(0, [NodeDown(0)])
        assert engine.handle(1, [Submitted(Job("a", 0, 1, Request(1000)))]) == []


class TestMinimumRunTime:
    """min_run_s = 15 minutes (scenario 26)."""

    POLICY = "priority(min_run_s=900)"

    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_the_stronger_waits_until_it_is_over(self, placement: str) -> None:
        jobs = {"L": ask(0, 5000), "H": ask(600, 100, priority=1)}
        assert fates(self.POLICY, jobs, placement=placement) == {
            "L": Fate(0, 5100, 1),
            "H": Fate(900, 1000),
        }

    def test_a_victim_past_it_is_preferred(self) -> None:
        jobs = {"old": ask(0, 5000, priority=1), "new": ask(600, 5000), "H": ask(1000, 100, priority=2)}
        found = fates(self.POLICY, jobs, nodes=2)
        assert (found["H"].start, stopped(found)) == (1000, ["old"])

    @pytest.mark.parametrize("policy", ["srtf", "las(limit=50)", "priority", "drf", "timeslice(quantum_s=1)"])
    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_it_counts_from_when_work_begins(self, policy: str, placement: str) -> None:
        """Asked to start at 0, working from 30 on, protected for 100 s: stopped at 130."""
        name = policy.partition("(")[0]
        knobs = policy.partition("(")[2].rstrip(")")
        jobs = {
            "a": ask(0, 1000, tenant="a"),
            "b": ask(60, 10, priority=3, tenant="b"),
        }
        found = fates(
            f"{name}(min_run_s=100{',' if knobs else ''}{knobs})",
            jobs,
            placement=placement,
            costs=Costs(checkpoint_s=0, restore_s=0, start_s=30),
        )
        expected = 130 if name != "drf" else 1030  # equal tenants: nobody gives way
        assert found["b"].start == expected

    def test_a_job_that_begins_late_is_seen_in_time(self) -> None:
        """The start takes longer than the minimum run time; `b` came meanwhile."""
        jobs = {"a": ask(0, 1000), "b": ask(30, 10)}
        costs = Costs(checkpoint_s=0, restore_s=0, start_s=50)
        assert fates("srtf(min_run_s=20)", jobs, costs=costs)["b"].start == 70
        assert fates("srtf(min_run_s=0)", dict(jobs), costs=costs)["b"].start == 50

    @pytest.mark.parametrize("placement", ["pack", "pool"])
    def test_a_stronger_job_need_not_wait_for_the_victim_of_another(self, placement: str) -> None:
        """`mid` waits for the end of B's protection at 80; `short` comes and takes A at 60."""
        jobs = {"A": ask(0, 1000), "B": ask(20, 3000), "mid": ask(25, 2000), "short": ask(30, 100)}
        found = fates("srtf(min_run_s=60)", jobs, gpus=2, placement=placement)
        assert found["short"].start == 60
        assert (found["A"].stops, found["mid"].start) == (1, 160)

    def test_a_later_end_of_a_protection_does_not_hide_an_earlier_one(self) -> None:
        """At 60 a's slice ends while the wake-up for c's release is due: c, started at 13, may
        be stopped at 73, not only when d may."""
        jobs = {
            "a": ask(0, 30),
            "b": ask(0, 13),
            "c": ask(0, 5000),
            "d": ask(0, 5000),
            "e": ask(0, 100),
        }
        found = fates("timeslice(quantum_s=30,min_run_s=60)", jobs, gpus=2, placement="pool")
        assert found["e"].start == 73

    def test_a_job_that_starts_as_another_arrives_can_be_displaced_by_it(self) -> None:
        """M starts at 16, when L has given up its GPU; S arrives at that very instant."""
        jobs = {"L": ask(0, 1000), "M": ask(10, 500), "S": ask(16, 1)}
        found = fates(SRTF, jobs, costs=Costs(checkpoint_s=6, restore_s=24))
        assert found["S"].start == 22

    def test_none_in_a_pool_without_costs(self) -> None:
        jobs = {"a": ask(0, 1000), "b": ask(30, 10)}
        assert fates("srtf", jobs, placement="pool")["b"].start == 30
        assert fates("srtf", dict(jobs), placement="pack")["b"].start == 60


class TestTinyClusters:
    """All possibilities tried: running jobs of random sizes and strengths, and one that arrives."""

    @settings(max_examples=150)
    @given(
        sizes=st.lists(st.sampled_from((1, 2, 3)), min_size=1, max_size=3),
        running=st.lists(
            st.tuples(st.integers(1, 5), st.integers(0, 3), st.booleans()), min_size=1, max_size=6
        ),
        new=st.tuples(st.integers(1, 6), st.integers(0, 4)),
    )
    def test_no_victim_is_superfluous_and_none_weaker_would_do(
        self, sizes: list[int], running: list[tuple[int, int, bool]], new: tuple[int, int]
    ) -> None:
        cluster = Cluster(tuple(Node(f"n{i}", size) for i, size in enumerate(sizes)))
        policy = create("priority(min_run_s=0,ageing_s=0)")
        engine = Engine(cluster, policy, Oracle(lambda job: 100 * SECOND), validate=True)
        held: dict[str, tuple[int, Allocation]] = {}
        for row, (gpus, priority, preemptible) in enumerate(running):
            request = Request(1000 * gpus, preemptible=preemptible)
            if policy.placement.find(engine.state.capacity, request) is None:
                continue
            engine.handle(0, [Submitted(Job(f"j{row}", row, 0, request, priority=priority))])
            engine.handle(0, [Started(f"j{row}")])
            allocation = engine.state.jobs[f"j{row}"].allocation
            assert allocation is not None
            held[f"j{row}"] = (priority, allocation)
        gpus, priority = new
        request = Request(1000 * gpus)
        actions = engine.handle(1, [Submitted(Job("new", 99, 1, request, priority=priority))])
        victims = [action.job_id for action in actions if isinstance(action, Stop)]
        may_go = [
            name
            for name, (rank, _) in held.items()
            if rank < priority and engine.state.jobs[name].job.request.preemptible
        ]
        assert set(victims) <= set(may_go)

        def room(gone: tuple[str, ...]) -> bool:
            capacity = type(engine.state.capacity)(cluster)  # type: ignore[call-arg]
            for name, (_, allocation) in held.items():
                if name not in gone:
                    capacity.take(allocation)
            return policy.placement.find(capacity, request) is not None

        if not room(()) and gpus <= max(sizes):
            enough = [
                gone
                for count in range(1, len(may_go) + 1)
                for gone in itertools.combinations(may_go, count)
                if self.on_one_node(gone, held) and room(gone)
            ]
            assert bool(victims) == bool(enough), f"of these one is enough: {enough}"
            if victims:
                strength = max(held[name][0] for name in victims)
                assert strength == min(max(held[name][0] for name in gone) for gone in enough)
        if victims:
            assert room(tuple(victims))
            for spared in victims:
                assert not room(tuple(name for name in victims if name != spared)), f"{spared} is superfluous"
        else:
            assert not any(isinstance(action, Start) for action in actions) or room(())

    @staticmethod
    def on_one_node(gone: tuple[str, ...], held: dict[str, tuple[int, Allocation]]) -> bool:
        """All of them hold GPUs of one common node."""
        nodes = [set(held[name][1].nodes) for name in gone]
        return bool(set.intersection(*nodes))
