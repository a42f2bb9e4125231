"""Alarm rules."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, Dict, List

from tidewatch.alarms.events import AlarmEvent, Severity
from tidewatch.model.series import Series
from tidewatch.registry import Configurable, Registry
from tidewatch.timeutil import DurationLike, format_duration, hours_between, require_duration
from tidewatch.validation import require_finite, require_positive


class Rule(Configurable, ABC):
    """Looks at a series and reports what is wrong with it."""

    def __init__(self, severity: str = "warning") -> None:
        self.severity = Severity.parse(severity)

    @abstractmethod
    def check(self, series: Series, now: datetime) -> List[AlarmEvent]:
        """Return one event for each time the rule fires."""

    def event(self, series: Series, moment: datetime, message: str) -> AlarmEvent:
        """Build an event with the name and the severity of this rule."""
        return AlarmEvent(series.gauge.code, self.kind, self.severity, moment, message)

    def params(self) -> Dict[str, Any]:
        return {"severity": self.severity.name.lower()}


RULES: Registry[Rule] = Registry("rule")


@RULES.register("high")
class HighLevelRule(Rule):
    """Fires when the value rises to a limit; re-arms below limit minus hysteresis."""

    def __init__(self, limit: float, hysteresis: float = 0.0, severity: str = "warning") -> None:
        super().__init__(severity)
        self.limit = require_finite("limit", limit)
        self.hysteresis = abs(require_finite("hysteresis", hysteresis))

    def check(self, series: Series, now: datetime) -> List[AlarmEvent]:
        events, active = [], False
        for reading in series.usable():
            if not active and reading.value >= self.limit:
                active = True
                message = f"{reading.value:.2f} {series.gauge.unit} reaches {self.limit:.2f}"
                events.append(self.event(series, reading.time, message))
            elif active and reading.value < self.limit - self.hysteresis:
                active = False
        return events

    def params(self) -> Dict[str, Any]:
        return {"limit": self.limit, "hysteresis": self.hysteresis, **super().params()}


@RULES.register("rate")
class RateRule(Rule):
    """Fires on every rise or fall faster than ``per_hour``."""

    def __init__(self, per_hour: float, severity: str = "warning") -> None:
        super().__init__(severity)
        self.per_hour = require_positive("per_hour", per_hour)

    def check(self, series: Series, now: datetime) -> List[AlarmEvent]:
        events = []
        readings = series.usable().readings
        for left, right in zip(readings, readings[1:]):
            rate = (right.value - left.value) / hours_between(left.time, right.time)
            if abs(rate) > self.per_hour:
                message = f"changes by {rate:+.2f} {series.gauge.unit} per hour"
                events.append(self.event(series, right.time, message))
        return events

    def params(self) -> Dict[str, Any]:
        return {"per_hour": self.per_hour, **super().params()}


@RULES.register("stale")
class StaleRule(Rule):
    """Fires when the newest usable reading is older than ``max_age``."""

    def __init__(self, max_age: DurationLike = "1h", severity: str = "critical") -> None:
        super().__init__(severity)
        self.max_age = require_duration("max_age", max_age)

    def check(self, series: Series, now: datetime) -> List[AlarmEvent]:
        usable = series.usable()
        if not len(usable):
            return [self.event(series, now, "no usable reading")]
        age = now - usable.end
        if age <= self.max_age:
            return []
        return [self.event(series, now, f"last reading is {format_duration(age)} old")]

    def params(self) -> Dict[str, Any]:
        return {"max_age": format_duration(self.max_age), **super().params()}
