"""Weights in grams and box dimensions in centimetres."""
from dataclasses import dataclass
from decimal import Decimal
from typing import Iterable, Tuple, Union

from parcelflow.exceptions import ValidationError

DEFAULT_DIVISOR = 5000


@dataclass(frozen=True, order=True)
class Weight:
    """A non-negative weight stored as whole grams."""
    grams: int

    def __post_init__(self) -> None:
        if self.grams < 0:
            raise ValidationError.single("weight", "must not be negative")

    @classmethod
    def from_kg(cls, kilograms: Union[int, float, str, Decimal]) -> "Weight":
        return cls(int((Decimal(str(kilograms)) * 1000).to_integral_value()))

    def format(self) -> str:
        if self.grams < 1000:
            return "{} g".format(self.grams)
        return "{:.2f} kg".format(Decimal(self.grams) / 1000)


@dataclass(frozen=True)
class Dimensions:
    """Outer size of a box in whole centimetres."""
    length: int
    width: int
    height: int

    def __post_init__(self) -> None:
        if min(self.sides) <= 0:
            raise ValidationError.single("dimensions", "must be positive")

    @property
    def sides(self) -> Tuple[int, int, int]:
        return self.length, self.width, self.height

    def volumetric_weight(self, divisor: int = DEFAULT_DIVISOR) -> Weight:
        return Weight.from_kg(Decimal(self.length * self.width * self.height) / divisor)


def total_weight(weights: Iterable[Weight]) -> Weight:
    """Add up weights; an empty iterable weighs nothing."""
    return Weight(sum(weight.grams for weight in weights))
