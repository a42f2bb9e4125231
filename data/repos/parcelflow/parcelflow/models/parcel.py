"""A single box inside a shipment."""
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from parcelflow.exceptions import ValidationError
from parcelflow.models.base import Entity, require_keys
from parcelflow.utils.ids import new_id
from parcelflow.utils.money import Money
from parcelflow.utils.weight import DEFAULT_DIVISOR, Dimensions, Weight


@dataclass
class Parcel(Entity):
    """A box with a weight, a size and optionally an insured value."""
    weight: Weight
    dimensions: Dimensions
    declared_value: Optional[Money] = None
    id: str = field(default_factory=lambda: new_id("pcl"))

    def __post_init__(self) -> None:
        if self.weight.grams == 0:
            raise ValidationError.single("weight", "must be positive")

    def chargeable_weight(self, divisor: int = DEFAULT_DIVISOR) -> Weight:
        """The larger of the actual and the volumetric weight."""
        return max(self.weight, self.dimensions.volumetric_weight(divisor))

    def to_dict(self) -> Dict[str, Any]:
        return {
            "id": self.id,
            "grams": self.weight.grams,
            "size": list(self.dimensions.sides),
            "declared_value": self.declared_value.to_dict() if self.declared_value else None,
        }

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Parcel":
        require_keys(data, ("grams", "size"))
        declared = data.get("declared_value")
        return cls(
            weight=Weight(int(data["grams"])),
            dimensions=Dimensions(*data["size"]),
            declared_value=Money.from_dict(declared) if declared else None,
            id=data.get("id") or new_id("pcl"),
        )
