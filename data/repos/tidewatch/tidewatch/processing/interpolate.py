"""Interpolation helpers."""

from datetime import datetime

from tidewatch.model.reading import Reading


def lerp(low: float, high: float, fraction: float) -> float:
    """Interpolate linearly between two values."""
    return low + (high - low) * fraction


def value_between(left: Reading, right: Reading, moment: datetime) -> float:
    """Return the linearly interpolated value between two readings."""
    return lerp(left.value, right.value, (moment - left.time) / (right.time - left.time))
