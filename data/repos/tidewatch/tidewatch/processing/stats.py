"""Descriptive statistics of a series."""

import math
import statistics
from dataclasses import asdict, dataclass
from typing import Any, Dict, Sequence

from tidewatch.errors import SeriesError
from tidewatch.model.series import Series
from tidewatch.processing.interpolate import lerp
from tidewatch.timeutil import format_timestamp
from tidewatch.validation import require_in_range


@dataclass(frozen=True)
class Summary:
    """Key figures of the usable readings of a series."""

    count: int
    start: str
    end: str
    mean: float
    minimum: float
    maximum: float
    stdev: float
    p95: float

    @property
    def range(self) -> float:
        """Difference between the highest and the lowest value."""
        return self.maximum - self.minimum

    def to_dict(self) -> Dict[str, Any]:
        """Return a JSON-compatible mapping."""
        return asdict(self)


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile with linear interpolation between the sorted values."""
    require_in_range("share", share, 0.0, 1.0)
    if not values:
        raise SeriesError("no values to take a quantile of")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low, high = math.floor(position), math.ceil(position)
    return lerp(ordered[low], ordered[high], position - low)


def summarize(series: Series) -> Summary:
    """Compute the :class:`Summary` of a series."""
    usable = series.usable()
    usable.require_length(1)
    values = usable.values
    return Summary(
        count=len(values),
        start=format_timestamp(usable.start),
        end=format_timestamp(usable.end),
        mean=statistics.fmean(values),
        minimum=min(values),
        maximum=max(values),
        stdev=statistics.pstdev(values),
        p95=quantile(values, 0.95),
    )
