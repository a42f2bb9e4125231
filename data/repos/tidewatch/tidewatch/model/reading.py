"""A single measured value with its time and quality flag."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Dict, Mapping

from tidewatch.errors import ValidationError
from tidewatch.timeutil import ensure_utc, format_timestamp, parse_timestamp
from tidewatch.validation import require_finite, require_keys


class Quality(Enum):
    """How far a reading can be trusted."""

    GOOD = "good"
    SUSPECT = "suspect"
    ESTIMATED = "estimated"
    BAD = "bad"

    @classmethod
    def parse(cls, text: str) -> "Quality":
        """Return the flag with the given value, case-insensitively."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise ValidationError("quality", f"unknown flag {text!r}") from None

    @property
    def usable(self) -> bool:
        """Whether statistics should take the reading into account."""
        return self is not Quality.BAD


@dataclass(frozen=True, order=True)
class Reading:
    """One value at one point in time; ordered by time."""

    time: datetime
    value: float
    quality: Quality = Quality.GOOD

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", ensure_utc(self.time))
        object.__setattr__(self, "value", require_finite("value", self.value))

    def with_value(self, value: float) -> "Reading":
        """Return a copy with another value and the same time and quality."""
        return replace(self, value=value)

    def with_quality(self, quality: Quality) -> "Reading":
        """Return a copy with another quality flag."""
        return replace(self, quality=quality)

    def to_dict(self) -> Dict[str, Any]:
        """Return a JSON-compatible mapping."""
        return {"time": format_timestamp(self.time), "value": self.value,
                "quality": self.quality.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Reading":
        """Build a reading from a mapping as written by :meth:`to_dict`."""
        require_keys(data, ["time", "value"], optional=["quality"])
        quality = Quality.parse(data.get("quality", "good"))
        return cls(parse_timestamp(data["time"]), data["value"], quality)
