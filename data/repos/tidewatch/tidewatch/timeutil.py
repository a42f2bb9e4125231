"""Timestamps and durations. All timestamps inside tidewatch are aware and in UTC."""

import re
from datetime import datetime, timedelta, timezone
from typing import Iterator, Union

from tidewatch.errors import ValidationError

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")

DurationLike = Union[str, int, float, timedelta]


def ensure_utc(moment: datetime) -> datetime:
    """Convert an aware datetime to UTC; naive ones are taken to be UTC already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def parse_timestamp(text: str) -> datetime:
    """Parse an ISO 8601 timestamp, a trailing ``Z`` included."""
    cleaned = text.strip()
    if cleaned.endswith(("Z", "z")):
        cleaned = cleaned[:-1] + "+00:00"
    try:
        return ensure_utc(datetime.fromisoformat(cleaned))
    except ValueError:
        raise ValidationError("timestamp", f"not an ISO timestamp: {text!r}") from None


def format_timestamp(moment: datetime) -> str:
    """Format a datetime as ISO 8601 with a trailing ``Z``."""
    return ensure_utc(moment).replace(tzinfo=None).isoformat() + "Z"


def parse_duration(value: DurationLike) -> timedelta:
    """Parse durations such as ``"10m"``, ``"1h30m"`` or a number of seconds."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)):
        return timedelta(seconds=value)
    text = value.strip().lower()
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValidationError("duration", f"not a duration: {value!r}")
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))


def require_duration(field: str, value: DurationLike) -> timedelta:
    """Parse a duration that has to be longer than zero."""
    duration = parse_duration(value)
    if duration <= timedelta(0):
        raise ValidationError(field, "must be longer than zero")
    return duration


def format_duration(duration: timedelta) -> str:
    """Format a duration in the notation that :func:`parse_duration` reads."""
    remaining = int(round(duration.total_seconds()))
    pieces = []
    for unit in ("d", "h", "m", "s"):
        count, remaining = divmod(remaining, _SECONDS[unit])
        if count:
            pieces.append(f"{count}{unit}")
    return "".join(pieces) or "0s"


def floor_time(moment: datetime, step: timedelta) -> datetime:
    """Round down to a multiple of ``step`` since the epoch."""
    return moment - (moment - EPOCH) % step


def time_range(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield timestamps from ``start`` up to and including ``end``."""
    current = start
    while current <= end:
        yield current
        current += step


def hours_between(start: datetime, end: datetime) -> float:
    """Return the signed number of hours from ``start`` to ``end``."""
    return (end - start).total_seconds() / 3600.0
