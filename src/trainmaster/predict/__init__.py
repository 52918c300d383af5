"""Predictors: how long will a job run, judged from what is known when it is asked."""

from trainmaster.predict.choose import PREDICTORS, make_predictor
from trainmaster.predict.predictors import Declared, History, Noisy, Oracle

__all__ = ["PREDICTORS", "Declared", "History", "Noisy", "Oracle", "make_predictor"]
