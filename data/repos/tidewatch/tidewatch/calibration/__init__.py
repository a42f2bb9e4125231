"""Calibrations turn raw sensor output into physical values."""

from tidewatch.calibration.base import CALIBRATIONS, Calibration
from tidewatch.calibration.curves import LinearCalibration, OffsetCalibration, TableCalibration

__all__ = ["CALIBRATIONS", "Calibration", "LinearCalibration", "OffsetCalibration",
           "TableCalibration"]
