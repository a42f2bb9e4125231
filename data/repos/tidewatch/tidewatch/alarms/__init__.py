"""Alarm rules and the engine that evaluates them."""

from tidewatch.alarms.engine import AlarmEngine
from tidewatch.alarms.events import AlarmEvent, Severity
from tidewatch.alarms.rules import RULES, HighLevelRule, RateRule, Rule, StaleRule

__all__ = ["RULES", "AlarmEngine", "AlarmEvent", "HighLevelRule", "RateRule",
           "Rule", "Severity", "StaleRule"]
