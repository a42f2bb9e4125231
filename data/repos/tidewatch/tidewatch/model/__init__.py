"""Data model: readings, gauges and series."""

from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Quality, Reading
from tidewatch.model.series import Series

__all__ = ["Gauge", "Quality", "Reading", "Series"]
