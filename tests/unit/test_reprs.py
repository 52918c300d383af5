"""What a notebook shows of the large objects: one line."""

from __future__ import annotations

import trainmaster as tm


def test_they_fit_a_line() -> None:
    trace = tm.synthesize("philly-like", days=3, load=0.5, nodes=2, seed=0)
    cluster = tm.Cluster.homogeneous(2, 8)
    result = tm.simulate(trace, [cluster, tm.Cluster.homogeneous(3, 8)], "fifo,las", seed=[0, 1])
    assert repr(trace) == f"Trace('synthetic-philly-like', {len(trace):,} jobs, 3 days, synthetic)"
    assert repr(tm.slice_trace(trace, limit=1)) == "Trace('synthetic-philly-like', 1 job, synthetic)"
    assert repr(cluster) == "Cluster(2 nodes, 16 GPUs)"
    assert repr(cluster.as_pool()) == "Cluster(1 node, 16 GPUs, pooled)"
    jobs = f"{len(result.submitted):,} jobs"
    assert repr(result) == f"Result('synthetic-philly-like', {jobs}, 8 runs: fifo, las)"
    assert repr(result.records[3]) == "RunRecord('las', 2 nodes, 16 GPUs, seed 1)"
