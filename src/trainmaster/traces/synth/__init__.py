"""Synthetic traces: our own generator, labelled synthetic everywhere."""

from trainmaster.traces.synth.generate import synthesize, synthesize_from
from trainmaster.traces.synth.preset import PRESETS, Arrivals, DurationCurve, People, Preset, Statuses

__all__ = [
    "PRESETS",
    "Arrivals",
    "DurationCurve",
    "People",
    "Preset",
    "Statuses",
    "synthesize",
    "synthesize_from",
]
