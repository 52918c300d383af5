"""Trainmaster replays the job log of a shared GPU cluster under many schedulers, and compares them.

>>> import trainmaster as tm
>>> trace = tm.synthesize("philly-like", days=0.2, load=0.8, nodes=2, seed=0)
>>> cluster = tm.Cluster.homogeneous(nodes=2, gpus_per_node=8)
>>> result = tm.simulate(trace, cluster, policy="srtf", seed=0)
>>> result.summary["finished"] == len(trace)
True

Everything is imported when it is first used, so importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from trainmaster._version import __version__

if TYPE_CHECKING:
    from trainmaster import testing
    from trainmaster.model.cluster import Cluster
    from trainmaster.model.errors import InputError, TrainmasterError
    from trainmaster.policies.base import Policy
    from trainmaster.policies.knobs import Knob
    from trainmaster.profiles import load_profile
    from trainmaster.sim.cluster_file import read_cluster
    from trainmaster.sim.options import Costs, Options
    from trainmaster.sim.result import Result
    from trainmaster.sim.sweep import simulate
    from trainmaster.traces import Trace, load_trace, sample, slice_trace, write_csv
    from trainmaster.traces.synth import synthesize

_HOME = {
    "Cluster": "model.cluster",
    "Costs": "sim.options",
    "InputError": "model.errors",
    "Knob": "policies.knobs",
    "Options": "sim.options",
    "Policy": "policies.base",
    "Result": "sim.result",
    "Trace": "traces",
    "TrainmasterError": "model.errors",
    "load_profile": "profiles",
    "load_trace": "traces",
    "read_cluster": "sim.cluster_file",
    "sample": "traces",
    "simulate": "sim.sweep",
    "slice_trace": "traces",
    "synthesize": "traces.synth",
    "testing": "testing",
    "write_csv": "traces",
}
"""Where each public name lives."""

__all__ = [
    "Cluster",
    "Costs",
    "InputError",
    "Knob",
    "Options",
    "Policy",
    "Result",
    "Trace",
    "TrainmasterError",
    "__version__",
    "load_profile",
    "load_trace",
    "read_cluster",
    "sample",
    "simulate",
    "slice_trace",
    "synthesize",
    "testing",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'trainmaster' has no attribute {name!r}")
    module = importlib.import_module(f"trainmaster.{home}")
    value = module if name == "testing" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
