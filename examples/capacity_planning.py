# %% [markdown]
# # How many nodes does the cluster need?
#
# A job log tells what people asked for. Replayed on clusters of several sizes, it tells how
# long they would have waited on each: the fewest nodes that keep the wait bearable are the
# answer, and it depends on the scheduler.
#
# The cells run one by one in an editor that knows `# %%` (or, through jupytext, in Jupyter),
# or all at once:
#
#     python examples/capacity_planning.py [TRACE] [--nodes 16,24,32] [--bearable-s 900] ...

# %%
from __future__ import annotations

import argparse

import numpy as np

import trainmaster as tm

parser = argparse.ArgumentParser(description="How many nodes keep the wait bearable?")
parser.add_argument("trace", nargs="?", help="a job log of any known format; by default a synthetic week")
parser.add_argument("--nodes", default="20,24,28,32,36,40", help="sizes of the cluster")
parser.add_argument("--gpus-per-node", type=int, default=8)
parser.add_argument("--policy", default="fifo,fifo(backfill=easy),srtf", help="schedulers to compare")
parser.add_argument("--bearable-s", type=float, default=900.0, help="a bearable wait, seconds")
parser.add_argument("--share", type=float, default=0.95, help="share of the jobs that may not wait longer")
parser.add_argument("--processes", type=int, default=2)
asked, _ = parser.parse_known_args()

# %% [markdown]
# ## The trace
#
# Jobs larger than the smallest cluster are left out on all of them, so that the figures
# compare; `result.trace["dropped"]` counts them.

# %%
sizes = [int(word) for word in asked.nodes.split(",")]
if asked.trace:
    trace = tm.load_trace(asked.trace)
else:
    trace = tm.synthesize("philly-like", days=7, load=0.9, nodes=32, seed=0)
days = trace.span_s / 86_400
print(f"{trace.name}: {len(trace):,} jobs over {days:.1f} days, {trace.gpu_hours:,.0f} GPU-hours")

# %% [markdown]
# ## The sweep
#
# Every policy on every size, in parallel processes; the figures are the same as one by one.

# %%
clusters = [tm.Cluster.homogeneous(nodes, asked.gpus_per_node) for nodes in sizes]
result = tm.simulate(trace, clusters, asked.policy, jobs=asked.processes)
if result.trace["dropped"]:
    print("left out:", result.trace["dropped"])

# %% [markdown]
# ## How long people wait for a start
#
# `result.jobs` is a NumPy array with one row per job and run. The wait for the first start
# is what somebody at a desk feels.

# %%
jobs = result.jobs
first_wait_s = jobs["first_start_s"] - jobs["submit_s"]
policies = list(dict.fromkeys(run["policy"] for run in result.runs))
wait_s = {
    (policy, nodes): float(
        np.quantile(first_wait_s[(jobs["policy"] == policy) & (jobs["nodes"] == nodes)], asked.share)
    )
    for policy in policies
    for nodes in sizes
}

width = max(len(policy) for policy in policies)
print(f"\nwait for the first start that {asked.share:.0%} of the jobs don't exceed, minutes")
print(f"{'nodes':<{width}}" + "".join(f"{nodes:>9}" for nodes in sizes))
for policy in policies:
    print(f"{policy:<{width}}" + "".join(f"{wait_s[policy, nodes] / 60:>9.1f}" for nodes in sizes))

# %% [markdown]
# ## The answer
#
# A preemptive scheduler starts jobs soon and may interrupt them later: the mean wait, which
# counts interruptions too, stands beside the answer.
#
# One week is one sample. Before buying, try other weeks (`tm.slice_trace`), a load that has
# grown (`tm.synthesize`), and a predictor that errs (`predictor="noisy:1"`).

# %%
figures = {(run["policy"], run["cluster"]["nodes"]): run for run in result.runs}
print(f"\nfewest nodes for a wait of at most {asked.bearable_s / 60:g} minutes")
for policy in policies:
    enough = [nodes for nodes in sorted(sizes) if wait_s[policy, nodes] <= asked.bearable_s]
    if enough:
        run = figures[policy, enough[0]]
        price = f"mean wait {run['mean_wait_s'] / 60:.1f} minutes, {run['preemptions']:,} preemptions"
        print(f"{policy:<{width}}{enough[0]:>9}    {price}")
    else:
        print(f"{policy:<{width}}{f'> {max(sizes)}':>9}")
