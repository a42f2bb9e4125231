import unittest

from tests.helpers import series_of
from tidewatch.calibration import CALIBRATIONS, TableCalibration
from tidewatch.errors import CalibrationError
from tidewatch.filters import FILTERS, MedianFilter, MovingAverage, Pipeline, StepFilter


class FilterTest(unittest.TestCase):
    def test_moving_average_cuts_window_at_the_ends(self):
        smoothed = MovingAverage(3).apply(series_of(0, 3, 6, 0))
        self.assertEqual(smoothed.values, [1.5, 3, 3, 3])

    def test_median_removes_a_spike(self):
        self.assertEqual(MedianFilter(3).apply(series_of(1, 1, 9, 1, 1)).values, [1] * 5)

    def test_exponential(self):
        smoothed = FILTERS.create("exponential", alpha=0.5)(series_of(0, 4, 4))
        self.assertEqual(smoothed.values, [0, 2, 3])

    def test_range_drops_readings_from_usable(self):
        flagged = FILTERS.create("range", low=0, high=5).apply(series_of(1, 99, 2))
        self.assertEqual(flagged.usable().values, [1, 2])

    def test_step_compares_with_last_plausible_reading(self):
        self.assertEqual(StepFilter(6).select(series_of(1, 8, 1.2, 1.3)), [1])

    def test_pipeline_round_trip(self):
        pipeline = Pipeline(["median", {"kind": "range", "low": 0, "high": 5}])
        self.assertEqual(len(pipeline), 2)
        self.assertEqual(FILTERS.from_dict(pipeline.to_dict()).to_dict(), pipeline.to_dict())


class CalibrationTest(unittest.TestCase):
    def test_invert_undoes_apply(self):
        for kind, params in (("offset", {"offset": 2}), ("linear", {"gain": 3, "offset": 1})):
            calibration = CALIBRATIONS.create(kind, **params)
            self.assertAlmostEqual(calibration.invert(calibration.apply(1.7)), 1.7)

    def test_table_interpolates_inside_only(self):
        table = TableCalibration([[0, 0], [2, 10], [1, 2]])
        self.assertEqual([table.apply(x) for x in (0, 0.5, 1.5, 2)], [0, 1, 6, 10])
        with self.assertRaises(CalibrationError):
            table.apply(2.1)
