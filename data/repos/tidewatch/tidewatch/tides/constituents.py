"""Tidal constituents and their speeds in degrees per hour."""

import math
from dataclasses import dataclass
from typing import Dict

from tidewatch.errors import PredictionError


@dataclass(frozen=True)
class Constituent:
    """A harmonic of the tide."""

    name: str
    speed: float

    def angle(self, hours: float) -> float:
        """Return the phase angle in radians after the given number of hours."""
        return math.radians(self.speed * hours % 360.0)


CONSTITUENTS: Dict[str, Constituent] = {
    name: Constituent(name, speed) for name, speed in (
        ("M2", 28.9841042), ("S2", 30.0), ("N2", 28.4397295),
        ("K1", 15.0410686), ("O1", 13.9430356), ("M4", 57.9682084))
}


def get_constituent(name: str) -> Constituent:
    """Look up a constituent by its usual name, case-insensitively."""
    try:
        return CONSTITUENTS[name.upper()]
    except KeyError:
        raise PredictionError(f"unknown constituent {name!r}") from None
