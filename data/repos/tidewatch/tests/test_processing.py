import math
import unittest
from datetime import timedelta

from tests.helpers import KIEL, START, minutes, series_of
from tidewatch.model import Quality
from tidewatch.processing import GAP_FILLERS, find_gaps, resample, summarize
from tidewatch.tides import TideModel, find_extrema, fit_model


class ResampleTest(unittest.TestCase):
    def test_aggregates(self):
        series = series_of(1, 2, 6, 10)
        for aggregate, first in (("mean", 3), ("median", 2), ("max", 6), ("last", 6)):
            with self.subTest(aggregate=aggregate):
                self.assertEqual(resample(series, "30m", aggregate).values, [first, 10])

    def test_worst_quality_is_kept(self):
        series = series_of(1, 2).flag([0], Quality.ESTIMATED)
        self.assertIs(resample(series, "1h")[0].quality, Quality.ESTIMATED)


class GapTest(unittest.TestCase):
    def setUp(self):
        self.series = series_of(0, 9, 9, 3).flag([1, 2], Quality.BAD)

    def test_find_gaps(self):
        gap, = find_gaps(self.series, "10m")
        self.assertEqual(gap.missing_times(), [minutes(10), minutes(20)])

    def test_fillers(self):
        for kind, expected in (("linear", [0, 1, 2, 3]), ("hold", [0, 0, 0, 3])):
            filled = GAP_FILLERS.create(kind).fill(self.series, "10m")
            self.assertEqual([round(v, 9) for v in filled.values], expected)
            self.assertIs(filled[1].quality, Quality.ESTIMATED)

    def test_long_gap_stays(self):
        filler = GAP_FILLERS.create("hold", max_gap="20m")
        self.assertEqual(filler.fill(self.series, "10m").values, [0, 3])


class SummaryTest(unittest.TestCase):
    def test_summarize(self):
        summary = summarize(series_of(1, 2, 3))
        self.assertEqual((summary.mean, summary.range, summary.count), (2, 2, 3))
        self.assertAlmostEqual(summary.p95, 2.9)


class TideTest(unittest.TestCase):
    def setUp(self):
        self.truth = TideModel(0.4, {"M2": (1.2, 0.5), "K1": (0.1, -0.2)})
        self.series = self.truth.predict(KIEL, START, START + timedelta(days=5), "1h")

    def test_fit_recovers_the_model(self):
        fitted = fit_model(self.series, ["M2", "K1"])
        self.assertAlmostEqual(fitted.mean, 0.4, places=6)
        self.assertAlmostEqual(fitted.amplitudes()["M2"], math.hypot(1.2, 0.5), places=6)

    def test_high_and_low_waters_alternate(self):
        kinds = [extremum.kind for extremum in find_extrema(self.series)]
        self.assertIn(len(kinds), (18, 19, 20))
        self.assertTrue(all(a != b for a, b in zip(kinds, kinds[1:])))
