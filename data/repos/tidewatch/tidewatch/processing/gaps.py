"""Find and fill holes in regularly sampled series."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Dict, List, Optional

from tidewatch.model.reading import Quality, Reading
from tidewatch.model.series import Series
from tidewatch.processing.interpolate import value_between
from tidewatch.registry import Configurable, Registry
from tidewatch.timeutil import DurationLike, format_duration, require_duration, time_range
from tidewatch.validation import require_finite


@dataclass(frozen=True)
class Gap:
    """Missing readings between two existing ones."""

    before: Reading
    after: Reading
    step: timedelta

    @property
    def duration(self) -> timedelta:
        """Time between the readings on both sides."""
        return self.after.time - self.before.time

    def missing_times(self) -> List[datetime]:
        """Return the timestamps at which readings are missing."""
        first = self.before.time + self.step
        return [t for t in time_range(first, self.after.time, self.step) if t < self.after.time]


def find_gaps(series: Series, step: DurationLike, tolerance: float = 1.5) -> List[Gap]:
    """Return all places where readings are further apart than ``tolerance`` steps."""
    interval = require_duration("step", step)
    limit = interval * require_finite("tolerance", tolerance)
    usable = series.usable().readings
    return [Gap(left, right, interval) for left, right in zip(usable, usable[1:])
            if right.time - left.time > limit]


class GapFiller(Configurable, ABC):
    """Base class of gap fillers; filled readings are flagged as estimated."""

    def __init__(self, max_gap: Optional[DurationLike] = None) -> None:
        self.max_gap = None if max_gap is None else require_duration("max_gap", max_gap)

    @abstractmethod
    def estimate(self, gap: Gap, moment: datetime) -> float:
        """Return the value for one missing timestamp."""

    def fill(self, series: Series, step: DurationLike) -> Series:
        """Fill all gaps that are not longer than ``max_gap``."""
        readings = series.usable().readings
        for gap in find_gaps(series, step):
            if self.max_gap is not None and gap.duration > self.max_gap:
                continue
            for moment in gap.missing_times():
                value = self.estimate(gap, moment)
                readings.append(Reading(moment, value, Quality.ESTIMATED))
        return series.replace(readings)

    def params(self) -> Dict[str, Any]:
        return {} if self.max_gap is None else {"max_gap": format_duration(self.max_gap)}


GAP_FILLERS: Registry[GapFiller] = Registry("gap filler")


@GAP_FILLERS.register("linear")
class LinearFiller(GapFiller):
    """Connect both sides of the gap by a straight line."""

    def estimate(self, gap: Gap, moment: datetime) -> float:
        return value_between(gap.before, gap.after, moment)


@GAP_FILLERS.register("hold")
class HoldFiller(GapFiller):
    """Repeat the last value before the gap."""

    def estimate(self, gap: Gap, moment: datetime) -> float:
        return gap.before.value
