"""Traces of jobs: read any known format, write one, cut out parts.

>>> FORMATS[0]
'csv'
"""

from trainmaster.traces.convert import write_csv
from trainmaster.traces.loading import FORMATS, load_trace
from trainmaster.traces.problems import Problems
from trainmaster.traces.readers.base import Reader
from trainmaster.traces.slicing import sample, slice_trace
from trainmaster.traces.trace import Trace, Truth

__all__ = [
    "FORMATS",
    "Problems",
    "Reader",
    "Trace",
    "Truth",
    "load_trace",
    "sample",
    "slice_trace",
    "write_csv",
]
