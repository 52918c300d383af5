"""Measures of a schedule, from events and actions alone: the simulator and the live
cluster use the same ones."""

from trainmaster.metrics.ledger import Ledger
from trainmaster.metrics.measures import job_measures, rank_value
from trainmaster.metrics.series import lanes, time_series

__all__ = ["Ledger", "job_measures", "lanes", "rank_value", "time_series"]
