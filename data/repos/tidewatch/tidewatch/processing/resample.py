"""Bring a series to a regular time step."""

import statistics
from datetime import datetime
from typing import Callable, Dict, List, Sequence

from tidewatch.model.reading import Quality, Reading
from tidewatch.model.series import Series
from tidewatch.timeutil import DurationLike, floor_time, require_duration
from tidewatch.validation import require_choice

Aggregate = Callable[[Sequence[float]], float]

AGGREGATES: Dict[str, Aggregate] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}


def resample(series: Series, step: DurationLike, aggregate: str = "mean") -> Series:
    """Aggregate the usable readings of each time step into one reading.

    Steps are aligned to the epoch and labelled with their start. Steps without
    any usable reading are left out, see :func:`tidewatch.processing.find_gaps`.
    """
    interval = require_duration("step", step)
    function = AGGREGATES[require_choice("aggregate", aggregate, AGGREGATES)]
    buckets: Dict[datetime, List[Reading]] = {}
    for reading in series.usable():
        buckets.setdefault(floor_time(reading.time, interval), []).append(reading)
    return series.replace(
        Reading(moment, function([r.value for r in members]), worst_quality(members))
        for moment, members in buckets.items())


def worst_quality(readings: Sequence[Reading]) -> Quality:
    """Return the least trustworthy flag among the readings."""
    order = list(Quality)
    return max((reading.quality for reading in readings), key=order.index)
