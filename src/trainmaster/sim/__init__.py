"""The simulator: the live scheduler's engine with another clock and another executor."""

from trainmaster.sim.options import Costs, Options
from trainmaster.sim.result import Result, RunRecord
from trainmaster.sim.sweep import simulate

__all__ = ["Costs", "Options", "Result", "RunRecord", "simulate"]
