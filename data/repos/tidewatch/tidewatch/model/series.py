"""A time-ordered container of readings of one gauge."""

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional

from tidewatch.errors import SeriesError
from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Quality, Reading
from tidewatch.timeutil import ensure_utc
from tidewatch.units import convert
from tidewatch.validation import require_keys


class Series:
    """Readings of one gauge, sorted by time and without duplicate timestamps.

    A series is immutable from the outside: all operations return a new one.
    """

    def __init__(self, gauge: Gauge, readings: Iterable[Reading] = ()) -> None:
        self.gauge = gauge
        self._readings = sorted(readings, key=lambda reading: reading.time)
        self._times = [reading.time for reading in self._readings]
        for earlier, later in zip(self._times, self._times[1:]):
            if earlier == later:
                raise SeriesError(f"{gauge.code}: two readings at {later.isoformat()}")

    @classmethod
    def from_values(cls, gauge: Gauge, start: datetime, step: timedelta,
                    values: Iterable[float]) -> "Series":
        """Build an evenly spaced series from plain values."""
        start = ensure_utc(start)
        return cls(gauge, (Reading(start + index * step, value)
                           for index, value in enumerate(values)))

    def __len__(self) -> int:
        return len(self._readings)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._readings)

    def __getitem__(self, index: int) -> Reading:
        return self._readings[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series):
            return NotImplemented
        return self.gauge == other.gauge and self._readings == other._readings

    @property
    def readings(self) -> List[Reading]:
        """A copy of the list of readings."""
        return list(self._readings)

    @property
    def times(self) -> List[datetime]:
        """The timestamps in ascending order."""
        return list(self._times)

    @property
    def values(self) -> List[float]:
        """The values in time order."""
        return [reading.value for reading in self._readings]

    @property
    def start(self) -> datetime:
        """Time of the first reading."""
        self.require_length(1)
        return self._times[0]

    @property
    def end(self) -> datetime:
        """Time of the last reading."""
        self.require_length(1)
        return self._times[-1]

    def require_length(self, minimum: int) -> None:
        """Raise :class:`SeriesError` if there are too few readings."""
        if len(self) < minimum:
            raise SeriesError(
                f"{self.gauge.code}: needs at least {minimum} readings, has {len(self)}")

    def replace(self, readings: Iterable[Reading]) -> "Series":
        """Return a series of the same gauge with other readings."""
        return Series(self.gauge, readings)

    def with_values(self, values: Iterable[float]) -> "Series":
        """Return a series with the same times and new values."""
        values = list(values)
        if len(values) != len(self):
            raise SeriesError(f"expected {len(self)} values, got {len(values)}")
        return self.replace(r.with_value(v) for r, v in zip(self._readings, values))

    def map(self, function: Callable[[float], float]) -> "Series":
        """Apply a function to every value."""
        return self.with_values(function(value) for value in self.values)

    def usable(self) -> "Series":
        """Drop all readings flagged as bad."""
        return self.replace(r for r in self._readings if r.quality.usable)

    def flag(self, indexes: Iterable[int], quality: Quality) -> "Series":
        """Set the quality of the readings at the given positions."""
        readings = self.readings
        for index in indexes:
            readings[index] = readings[index].with_quality(quality)
        return self.replace(readings)

    def between(self, start: Optional[datetime] = None,
                end: Optional[datetime] = None) -> "Series":
        """Return the part from ``start`` to ``end``, both included."""
        low = 0 if start is None else bisect_left(self._times, ensure_utc(start))
        high = len(self) if end is None else bisect_right(self._times, ensure_utc(end))
        return self.replace(self._readings[low:high])

    def merge(self, other: "Series") -> "Series":
        """Combine two series of a gauge; readings of ``other`` win at equal times."""
        if other.gauge.code != self.gauge.code:
            raise SeriesError(f"cannot merge {other.gauge.code} into {self.gauge.code}")
        combined = {reading.time: reading for reading in self._readings}
        combined.update((reading.time, reading) for reading in other)
        return self.replace(combined.values())

    def to_unit(self, unit: str) -> "Series":
        """Convert all values, and the gauge itself, to another unit."""
        source = self.gauge.unit
        data = self.gauge.to_dict()
        data.update(unit=unit, datum=convert(self.gauge.datum, source, unit))
        gauge = Gauge.from_dict(data)
        return Series(gauge, self.map(lambda value: convert(value, source, unit)))

    def to_dict(self) -> Dict[str, Any]:
        """Return a JSON-compatible mapping."""
        return {"gauge": self.gauge.to_dict(),
                "readings": [reading.to_dict() for reading in self._readings]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Series":
        """Build a series from a mapping as written by :meth:`to_dict`."""
        require_keys(data, ["gauge", "readings"], optional=[])
        gauge = Gauge.from_dict(data["gauge"])
        return cls(gauge, (Reading.from_dict(item) for item in data["readings"]))
