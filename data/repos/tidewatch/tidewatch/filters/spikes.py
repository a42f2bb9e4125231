"""Filters that flag implausible readings instead of changing their values."""

from abc import abstractmethod
from typing import Any, Dict, List

from tidewatch.errors import ValidationError
from tidewatch.filters.base import FILTERS, SeriesFilter
from tidewatch.model.reading import Quality
from tidewatch.model.series import Series
from tidewatch.timeutil import hours_between
from tidewatch.validation import require_finite, require_positive


class FlaggingFilter(SeriesFilter):
    """Base class of filters that set a quality flag on selected readings."""

    flag = Quality.SUSPECT

    @abstractmethod
    def select(self, series: Series) -> List[int]:
        """Return the positions of the readings to flag."""

    def apply(self, series: Series) -> Series:
        return series.flag(self.select(series), self.flag)


@FILTERS.register("range")
class RangeFilter(FlaggingFilter):
    """Flags values outside the physical range of the sensor as bad."""

    flag = Quality.BAD

    def __init__(self, low: float, high: float) -> None:
        self.low = require_finite("low", low)
        self.high = require_finite("high", high)
        if self.low >= self.high:
            raise ValidationError("low", "must be below high")

    def select(self, series: Series) -> List[int]:
        return [i for i, value in enumerate(series.values)
                if not self.low <= value <= self.high]

    def params(self) -> Dict[str, Any]:
        return {"low": self.low, "high": self.high}


@FILTERS.register("step")
class StepFilter(FlaggingFilter):
    """Flags values that change faster than ``max_rate`` units per hour."""

    def __init__(self, max_rate: float) -> None:
        self.max_rate = require_positive("max_rate", max_rate)

    def select(self, series: Series) -> List[int]:
        selected: List[int] = []
        previous = None
        for index, reading in enumerate(series):
            if previous is not None:
                hours = hours_between(previous.time, reading.time)
                if abs(reading.value - previous.value) > self.max_rate * hours:
                    selected.append(index)
                    continue  # compare the next one with the last plausible reading
            previous = reading
        return selected

    def params(self) -> Dict[str, Any]:
        return {"max_rate": self.max_rate}
