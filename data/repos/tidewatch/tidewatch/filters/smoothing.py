"""Smoothing filters."""

import statistics
from typing import Any, Dict, List, Sequence

from tidewatch.filters.base import FILTERS, SeriesFilter, WindowFilter
from tidewatch.model.series import Series
from tidewatch.processing.interpolate import lerp
from tidewatch.validation import require_in_range


@FILTERS.register("moving-average")
class MovingAverage(WindowFilter):
    """Mean over a centred window."""

    def combine(self, values: Sequence[float], centre: int) -> float:
        return statistics.fmean(values)


@FILTERS.register("median")
class MedianFilter(WindowFilter):
    """Median over a centred window; keeps steps sharper than a mean does."""

    def combine(self, values: Sequence[float], centre: int) -> float:
        return statistics.median(values)


@FILTERS.register("exponential")
class ExponentialSmoothing(SeriesFilter):
    """First-order low pass; a small ``alpha`` smooths more."""

    def __init__(self, alpha: float = 0.3) -> None:
        self.alpha = require_in_range("alpha", alpha, 0.001, 1.0)

    def apply(self, series: Series) -> Series:
        result: List[float] = []
        for value in series.values:
            result.append(lerp(result[-1], value, self.alpha) if result else value)
        return series.with_values(result)

    def params(self) -> Dict[str, Any]:
        return {"alpha": self.alpha}
