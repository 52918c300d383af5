"""Scheduling policies: one readable file each, composed of shared `parts`."""

from trainmaster.policies.base import Policy
from trainmaster.policies.knobs import Knob

__all__ = ["Knob", "Policy"]
