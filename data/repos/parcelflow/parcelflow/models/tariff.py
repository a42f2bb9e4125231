"""Price tables by zone and service level."""
from dataclasses import dataclass, field
from typing import Any, Dict, List

from parcelflow.exceptions import PricingError, ValidationError
from parcelflow.models.base import Entity, require_keys
from parcelflow.utils.ids import new_id
from parcelflow.utils.money import Money
from parcelflow.utils.weight import Weight

ZONES = ("domestic", "eu", "world")


@dataclass(frozen=True)
class WeightBand:
    """Price for every parcel up to and including ``limit``."""
    limit: Weight
    price: Money

    def to_dict(self) -> Dict[str, Any]:
        return {"limit_grams": self.limit.grams, "price": self.price.to_dict()}

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "WeightBand":
        require_keys(data, ("limit_grams", "price"))
        return cls(Weight(int(data["limit_grams"])), Money.from_dict(data["price"]))


@dataclass
class Tariff(Entity):
    """A table of weight bands for one zone and service level."""
    name: str
    zone: str
    service_level: str
    bands: List[WeightBand]
    active: bool = True
    id: str = field(default_factory=lambda: new_id("trf"))

    def __post_init__(self) -> None:
        if self.zone not in ZONES:
            raise ValidationError.single("zone", "must be one of " + ", ".join(ZONES))
        if not self.bands:
            raise ValidationError.single("bands", "at least one band is required")
        self.bands = sorted(self.bands, key=lambda band: band.limit)

    def price_for(self, weight: Weight) -> Money:
        """Return the price of the first band that holds ``weight``."""
        for band in self.bands:
            if weight <= band.limit:
                return band.price
        raise PricingError("{} is too heavy for {}".format(weight.format(), self.name))

    def to_dict(self) -> Dict[str, Any]:
        return dict(vars(self), bands=[band.to_dict() for band in self.bands])

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Tariff":
        require_keys(data, ("id", "name", "zone", "service_level", "bands"))
        bands = [WeightBand.from_dict(item) for item in data["bands"]]
        return cls(**dict(data, bands=bands))
