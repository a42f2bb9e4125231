"""Filters that clean or smooth a series."""

from tidewatch.filters.base import FILTERS, SeriesFilter
from tidewatch.filters.pipeline import Pipeline
from tidewatch.filters.smoothing import ExponentialSmoothing, MedianFilter, MovingAverage
from tidewatch.filters.spikes import RangeFilter, StepFilter

__all__ = ["FILTERS", "ExponentialSmoothing", "MedianFilter", "MovingAverage", "Pipeline",
           "RangeFilter", "SeriesFilter", "StepFilter"]
