import unittest

from tests.helpers import KIEL, START, minutes, series_of
from tidewatch.errors import SeriesError, ValidationError
from tidewatch.model import Gauge, Quality, Reading, Series


class ReadingTest(unittest.TestCase):
    def test_round_trip(self):
        reading = Reading(START, 1.25, Quality.SUSPECT)
        self.assertEqual(Reading.from_dict(reading.to_dict()), reading)

    def test_nan_is_refused(self):
        with self.assertRaises(ValidationError):
            Reading(START, float("nan"))


class SeriesTest(unittest.TestCase):
    def test_round_trip(self):
        series = series_of(1.0, 2.0).flag([1], Quality.BAD)
        self.assertEqual(Series.from_dict(series.to_dict()), series)

    def test_duplicate_times_are_refused(self):
        with self.assertRaisesRegex(SeriesError, "two readings"):
            Series(KIEL, [Reading(START, 1.0), Reading(START, 2.0)])

    def test_between_includes_both_ends(self):
        part = series_of(0, 1, 2, 3).between(minutes(10), minutes(20))
        self.assertEqual(part.values, [1, 2])

    def test_merge_prefers_the_other_series(self):
        merged = series_of(1, 2).merge(series_of(5))
        self.assertEqual(merged.values, [5, 2])
        with self.assertRaises(SeriesError):
            merged.merge(Series(Gauge("HUSUM")))

    def test_to_unit_converts_gauge_and_values(self):
        converted = series_of(1.5).to_unit("cm")
        self.assertEqual(converted.gauge.unit, "cm")
        self.assertAlmostEqual(converted[0].value, 150.0)
