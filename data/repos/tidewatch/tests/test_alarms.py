import unittest

from tests.helpers import minutes, series_of
from tidewatch.alarms import RULES, AlarmEngine, HighLevelRule, RateRule, StaleRule


class RuleTest(unittest.TestCase):
    def times(self, rule, *values):
        return [event.time for event in rule.check(series_of(*values), minutes(0))]

    def test_high_rearms_below_hysteresis(self):
        rule = HighLevelRule(5, hysteresis=1)
        self.assertEqual(self.times(rule, 5, 4.5, 5, 3, 6), [minutes(0), minutes(40)])

    def test_rate(self):
        self.assertEqual(self.times(RateRule(5), 0, 0.5, 2, 1.5), [minutes(20)])

    def test_stale(self):
        self.assertEqual(StaleRule("30m").check(series_of(1), minutes(30)), [])
        event, = StaleRule("30m").check(series_of(1), minutes(45))
        self.assertEqual(event.message, "last reading is 45m old")

    def test_round_trip(self):
        for rule in (HighLevelRule(5, 1, "critical"), RateRule(2), StaleRule("2h")):
            self.assertEqual(RULES.from_dict(rule.to_dict()).to_dict(), rule.to_dict())


class EngineTest(unittest.TestCase):
    def test_events_are_reported_once(self):
        engine, received = AlarmEngine(), []
        engine.add_rule(HighLevelRule(5))
        engine.add_handler(received.append)
        self.assertEqual(len(engine.check(series_of(1, 6), minutes(10))), 1)
        self.assertEqual(engine.check(series_of(1, 6), minutes(20)), [])
        self.assertEqual([event.gauge for event in received], ["KIEL"])
