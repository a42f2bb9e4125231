"""Base class and registry of calibrations."""

from abc import ABC, abstractmethod

from tidewatch.errors import CalibrationError
from tidewatch.model.series import Series
from tidewatch.registry import Configurable, Registry


class Calibration(Configurable, ABC):
    """A function from raw to calibrated values."""

    @abstractmethod
    def apply(self, raw: float) -> float:
        """Return the calibrated value for a raw one."""

    def invert(self, value: float) -> float:
        """Return the raw value that gives ``value``, if the curve has an inverse."""
        raise CalibrationError(f"{self.kind} calibration has no inverse")

    def apply_series(self, series: Series) -> Series:
        """Calibrate all values of a series."""
        return series.map(self.apply)


CALIBRATIONS: Registry[Calibration] = Registry("calibration")
