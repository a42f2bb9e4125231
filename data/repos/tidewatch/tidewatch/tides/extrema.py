"""High and low waters."""

from dataclasses import dataclass
from typing import List

from tidewatch.model.reading import Reading
from tidewatch.model.series import Series
from tidewatch.timeutil import format_timestamp


@dataclass(frozen=True)
class Extremum:
    """A high water (``kind`` "HW") or a low water (``kind`` "LW")."""

    kind: str
    reading: Reading

    def __str__(self) -> str:
        return f"{self.kind} {format_timestamp(self.reading.time)} {self.reading.value:.2f}"


def find_extrema(series: Series, min_range: float = 0.0) -> List[Extremum]:
    """Return the turning points that differ by at least ``min_range``."""
    readings = series.usable().readings
    found: List[Extremum] = []
    for left, middle, right in zip(readings, readings[1:], readings[2:]):
        if left.value < middle.value >= right.value:
            candidate = Extremum("HW", middle)
        elif left.value > middle.value <= right.value:
            candidate = Extremum("LW", middle)
        else:
            continue
        if found and abs(found[-1].reading.value - middle.value) < min_range:
            continue
        found.append(candidate)
    return found
