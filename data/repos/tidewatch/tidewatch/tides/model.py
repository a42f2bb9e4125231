"""Fit a sum of harmonics to a series, and evaluate it."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Dict, List, Mapping, Sequence, Tuple

from tidewatch.errors import PredictionError
from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Quality, Reading
from tidewatch.model.series import Series
from tidewatch.tides.constituents import get_constituent
from tidewatch.timeutil import EPOCH, DurationLike, hours_between, require_duration, time_range


@dataclass(frozen=True)
class TideModel:
    """A mean level and the cosine and sine amplitudes of each constituent."""

    mean: float
    terms: Mapping[str, Tuple[float, float]]

    def level(self, moment: datetime) -> float:
        """Return the modelled level at one point in time."""
        hours = hours_between(EPOCH, moment)
        total = self.mean
        for name, (cosine, sine) in self.terms.items():
            angle = get_constituent(name).angle(hours)
            total += cosine * math.cos(angle) + sine * math.sin(angle)
        return total

    def amplitudes(self) -> Dict[str, float]:
        """Return the amplitude of each constituent."""
        return {name: math.hypot(*pair) for name, pair in self.terms.items()}

    def predict(self, gauge: Gauge, start: datetime, end: datetime,
                step: DurationLike = "10m") -> Series:
        """Return the modelled levels from ``start`` to ``end``."""
        interval = require_duration("step", step)
        return Series(gauge, (Reading(moment, self.level(moment), Quality.ESTIMATED)
                              for moment in time_range(start, end, interval)))


def fit_model(series: Series, names: Sequence[str] = ("M2", "S2", "K1", "O1")) -> TideModel:
    """Fit mean level and constituents by least squares to the usable readings."""
    usable = series.usable()
    usable.require_length(2 * len(names) + 1)
    constituents = [get_constituent(name) for name in names]
    rows = []
    for moment in usable.times:
        angles = [c.angle(hours_between(EPOCH, moment)) for c in constituents]
        rows.append([1.0] + [f(angle) for angle in angles for f in (math.cos, math.sin)])
    size = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(size)] for i in range(size)]
    right = [sum(row[i] * value for row, value in zip(rows, usable.values)) for i in range(size)]
    solution = solve(matrix, right)
    terms = {c.name: (solution[2 * k + 1], solution[2 * k + 2])
             for k, c in enumerate(constituents)}
    return TideModel(solution[0], terms)


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> List[float]:
    """Solve a square linear system by elimination with partial pivoting."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        if abs(rows[pivot][column]) < 1e-9:
            raise PredictionError("the data cannot tell the constituents apart")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, size):
            factor = rows[i][column] / rows[column][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column])]
    result = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * result[j] for j in range(i + 1, size))
        result[i] = (rows[i][size] - known) / rows[i][i]
    return result
