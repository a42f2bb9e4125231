"""Base classes and registry of filters."""

from abc import ABC, abstractmethod
from typing import Any, Dict, List, Sequence

from tidewatch.model.series import Series
from tidewatch.registry import Configurable, Registry
from tidewatch.validation import require_window


class SeriesFilter(Configurable, ABC):
    """Turns a series into another one of the same gauge."""

    @abstractmethod
    def apply(self, series: Series) -> Series:
        """Return the filtered series."""

    def __call__(self, series: Series) -> Series:
        return self.apply(series)


class WindowFilter(SeriesFilter):
    """Replaces each value by a figure computed over a centred window, cut off at both ends."""

    def __init__(self, window: int = 5) -> None:
        self.window = require_window("window", window, minimum=3, odd=True)

    @abstractmethod
    def combine(self, values: Sequence[float], centre: int) -> float:
        """Return the new value for position ``centre`` of the window values."""

    def apply(self, series: Series) -> Series:
        values = series.values
        half = self.window // 2
        result: List[float] = []
        for index in range(len(values)):
            low = max(0, index - half)
            result.append(self.combine(values[low:index + half + 1], index - low))
        return series.with_values(result)

    def params(self) -> Dict[str, Any]:
        return {"window": self.window}


FILTERS: Registry[SeriesFilter] = Registry("filter")
