"""Who stops for whom among parts of a GPU, as the guide to placement says."""

from __future__ import annotations

import pytest

import trainmaster as tm
from trainmaster.model.job import Job, Request
from trainmaster.model.units import SECOND
from trainmaster.traces import Truth


@pytest.mark.parametrize("policy", ["srtf", "srsf", "timeslice"])
@pytest.mark.parametrize(("placement", "stops"), [("pack", 0), ("spread", 0), ("pool", 1)])
def test_a_fraction_is_stopped_for_others_in_a_pool_only(policy: str, placement: str, stops: int) -> None:
    jobs = [Job("part", 0, 0, Request(500)), Job("whole", 1, 200 * SECOND, Request(1000))]
    trace = tm.Trace(jobs, [Truth(10_000 * SECOND), Truth(10 * SECOND)])
    cluster = tm.Cluster.homogeneous(1, 1)
    result = tm.simulate(trace, cluster, policy, placement=placement, predictor="oracle", validate=True)
    assert [int(row["preemptions"]) for row in result.jobs] == [stops, 0]
