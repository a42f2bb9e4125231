"""Alarm events and severities."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from tidewatch.validation import require_choice


class Severity(IntEnum):
    """Severities in ascending order."""

    INFO = 10
    WARNING = 20
    CRITICAL = 30

    @classmethod
    def parse(cls, text: str) -> "Severity":
        """Return the severity with the given name, case-insensitively."""
        return cls[require_choice("severity", text.strip().upper(), cls.__members__)]


@dataclass(frozen=True)
class AlarmEvent:
    """A rule fired for a gauge."""

    gauge: str
    rule: str
    severity: Severity
    time: datetime
    message: str
