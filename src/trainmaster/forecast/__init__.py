"""When waiting jobs will start: the state of a scheduler, run forward many times.

The scheduler is the simulator's own engine with its own policy; what isn't known is drawn anew in
each run: how long jobs run, and which jobs are still to be submitted.
"""

from trainmaster.forecast.outlook import Forecast, JobForecast, QueueForecast, Spread, forecast

__all__ = ["Forecast", "JobForecast", "QueueForecast", "Spread", "forecast"]
