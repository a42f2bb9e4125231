"""Evaluate rules for many gauges."""

from datetime import datetime
from typing import Callable, Dict, List

from tidewatch.alarms.events import AlarmEvent
from tidewatch.alarms.rules import Rule
from tidewatch.model.series import Series
from tidewatch.timeutil import ensure_utc

Handler = Callable[[AlarmEvent], None]

# Rules filed under this code are checked for every gauge.
ANY_GAUGE = "*"


class AlarmEngine:
    """Holds rules by gauge code and passes new events to handlers."""

    def __init__(self) -> None:
        self._rules: Dict[str, List[Rule]] = {}
        self._handlers: List[Handler] = []
        self._seen: set = set()

    def add_rule(self, rule: Rule, code: str = ANY_GAUGE) -> None:
        """Check ``rule`` for one gauge, or for all of them."""
        self._rules.setdefault(code, []).append(rule)

    def add_handler(self, handler: Handler) -> None:
        """Call ``handler`` with every new event."""
        self._handlers.append(handler)

    def rules_for(self, code: str) -> List[Rule]:
        """Return the general rules followed by those of one gauge."""
        return self._rules.get(ANY_GAUGE, []) + self._rules.get(code, [])

    def check(self, series: Series, now: datetime) -> List[AlarmEvent]:
        """Return the events of a series that have not been reported before."""
        fresh = []
        for rule in self.rules_for(series.gauge.code):
            for event in rule.check(series, ensure_utc(now)):
                if event not in self._seen:
                    self._seen.add(event)
                    fresh.append(event)
        fresh.sort(key=lambda event: (event.time, -event.severity))
        for event in fresh:
            for handler in self._handlers:
                handler(event)
        return fresh
