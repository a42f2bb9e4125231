"""The calibrations that come with the package."""

from bisect import bisect_right
from typing import Any, Dict, Sequence

from tidewatch.calibration.base import CALIBRATIONS, Calibration
from tidewatch.errors import CalibrationError, ValidationError
from tidewatch.processing.interpolate import lerp
from tidewatch.validation import require_finite


@CALIBRATIONS.register("offset")
class OffsetCalibration(Calibration):
    """Add a constant, for example after a sensor was re-levelled."""

    def __init__(self, offset: float) -> None:
        self.offset = require_finite("offset", offset)

    def apply(self, raw: float) -> float:
        return raw + self.offset

    def invert(self, value: float) -> float:
        return value - self.offset

    def params(self) -> Dict[str, Any]:
        return {"offset": self.offset}


@CALIBRATIONS.register("linear")
class LinearCalibration(Calibration):
    """Apply ``gain * raw + offset``."""

    def __init__(self, gain: float, offset: float = 0.0) -> None:
        self.gain = require_finite("gain", gain)
        self.offset = require_finite("offset", offset)

    def apply(self, raw: float) -> float:
        return self.gain * raw + self.offset

    def invert(self, value: float) -> float:
        if self.gain == 0:
            raise CalibrationError("a linear calibration with zero gain has no inverse")
        return (value - self.offset) / self.gain

    def params(self) -> Dict[str, Any]:
        return {"gain": self.gain, "offset": self.offset}


@CALIBRATIONS.register("table")
class TableCalibration(Calibration):
    """Interpolate in a table, as in a stage-discharge rating curve."""

    def __init__(self, points: Sequence[Sequence[float]]) -> None:
        if len(points) < 2:
            raise ValidationError("points", "needs at least two points")
        pairs = sorted((require_finite("raw", x), require_finite("true", y)) for x, y in points)
        self.raw = [x for x, _ in pairs]
        self.true = [y for _, y in pairs]
        if len(set(self.raw)) != len(self.raw):
            raise ValidationError("points", "raw values must be distinct")

    def apply(self, raw: float) -> float:
        if not self.raw[0] <= raw <= self.raw[-1]:
            raise CalibrationError(f"{raw:g} is outside the calibration table")
        return self._interpolate(self.raw, self.true, raw)

    @staticmethod
    def _interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
        index = min(bisect_right(xs, x), len(xs) - 1)
        fraction = (x - xs[index - 1]) / (xs[index] - xs[index - 1])
        return lerp(ys[index - 1], ys[index], fraction)

    def params(self) -> Dict[str, Any]:
        return {"points": [[x, y] for x, y in zip(self.raw, self.true)]}
