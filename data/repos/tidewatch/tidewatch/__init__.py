"""Toolkit for harbour and river sensor time series."""

from tidewatch.errors import TidewatchError
from tidewatch.model import Gauge, Quality, Reading, Series

__version__ = "0.6.2"

__all__ = ["Gauge", "Quality", "Reading", "Series", "TidewatchError", "__version__"]
