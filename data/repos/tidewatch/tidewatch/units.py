"""Units of measurement and conversions between them."""

from dataclasses import dataclass
from typing import Dict

from tidewatch.errors import UnitError


@dataclass(frozen=True)
class Unit:
    """A unit, defined by its linear relation to the base unit of its quantity."""

    symbol: str
    quantity: str
    scale: float
    offset: float = 0.0

    def to_base(self, value: float) -> float:
        """Convert a value in this unit to the base unit."""
        return value * self.scale + self.offset

    def from_base(self, value: float) -> float:
        """Convert a value in the base unit to this unit."""
        return (value - self.offset) / self.scale


UNITS: Dict[str, Unit] = {
    unit.symbol: unit for unit in (
        Unit("m", "level", 1.0), Unit("cm", "level", 0.01), Unit("ft", "level", 0.3048),
        Unit("m3/s", "flow", 1.0), Unit("l/s", "flow", 0.001),
        Unit("m/s", "speed", 1.0), Unit("kn", "speed", 1852.0 / 3600.0),
        Unit("degC", "temperature", 1.0), Unit("degF", "temperature", 5 / 9, -160 / 9))
}


def get_unit(symbol: str) -> Unit:
    """Look up a unit by its symbol."""
    try:
        return UNITS[symbol]
    except KeyError:
        raise UnitError(f"unknown unit {symbol!r}") from None


def convert(value: float, source: str, target: str) -> float:
    """Convert ``value`` between two units of the same quantity."""
    if source == target:
        return value
    from_unit, to_unit = get_unit(source), get_unit(target)
    if from_unit.quantity != to_unit.quantity:
        raise UnitError(f"cannot convert {from_unit.quantity} to {to_unit.quantity}")
    return to_unit.from_base(from_unit.to_base(value))
