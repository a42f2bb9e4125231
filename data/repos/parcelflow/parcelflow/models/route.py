"""Legs between hubs and the routes built from them."""
from dataclasses import dataclass, field
from typing import List

from parcelflow.exceptions import ValidationError


@dataclass(frozen=True)
class Leg:
    """A direct connection between two hubs."""
    origin: str
    destination: str
    hours: float
    mode: str = "road"

    def __post_init__(self) -> None:
        if self.hours <= 0:
            raise ValidationError.single("hours", "must be positive")

    def reversed(self) -> "Leg":
        return Leg(self.destination, self.origin, self.hours, self.mode)


@dataclass
class Route:
    """The planned way of one shipment through the hub network."""
    shipment_id: str
    legs: List[Leg] = field(default_factory=list)

    def __post_init__(self) -> None:
        for before, after in zip(self.legs, self.legs[1:]):
            if before.destination != after.origin:
                raise ValidationError.single("legs", "legs do not connect")

    @property
    def hubs(self) -> List[str]:
        if not self.legs:
            return []
        return [self.legs[0].origin] + [leg.destination for leg in self.legs]

    @property
    def total_hours(self) -> float:
        return sum(leg.hours for leg in self.legs)
