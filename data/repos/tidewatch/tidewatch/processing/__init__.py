"""Resampling, gap filling and statistics."""

from tidewatch.processing.gaps import GAP_FILLERS, Gap, find_gaps
from tidewatch.processing.resample import AGGREGATES, resample
from tidewatch.processing.stats import Summary, summarize

__all__ = ["AGGREGATES", "GAP_FILLERS", "Gap", "Summary", "find_gaps", "resample", "summarize"]
