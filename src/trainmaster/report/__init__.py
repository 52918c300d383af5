"""Tables and the one-file HTML report, made from result records alone."""

from .html import write_report
from .records import Records, Run, load_records
from .tables import comparison_table, comparison_text

__all__ = ["Records", "Run", "comparison_table", "comparison_text", "load_records", "write_report"]
