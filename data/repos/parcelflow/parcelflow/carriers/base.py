"""Base class and registry for carriers."""
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Tuple

from parcelflow.exceptions import PricingError
from parcelflow.models.shipment import Shipment
from parcelflow.utils.ids import new_tracking_number
from parcelflow.utils.money import Money
from parcelflow.utils.registry import Registry
from parcelflow.utils.weight import Weight


class Carrier(ABC):
    """A company that moves parcels. Subclasses differ in limits, price and speed."""
    code = ""
    tracking_prefix = "XX"
    max_parcel_weight = Weight.from_kg(30)
    zones: Tuple[str, ...] = ("domestic", "eu", "world")
    rate = Decimal("1.00")

    def supports(self, shipment: Shipment) -> bool:
        """Whether this carrier takes the shipment at all."""
        if shipment.zone not in self.zones:
            return False
        return all(parcel.weight <= self.max_parcel_weight for parcel in shipment.parcels)

    def ensure_supports(self, shipment: Shipment) -> None:
        if not self.supports(shipment):
            raise PricingError("Carrier '{}' does not take this shipment".format(self.code))

    @abstractmethod
    def transit_days(self, shipment: Shipment) -> int:
        """Working days from pick-up to delivery."""

    def adjust(self, amount: Money) -> Money:
        """Apply the carrier's rate to a tariff price."""
        return amount * self.rate

    def issue_tracking_number(self) -> str:
        return new_tracking_number(self.tracking_prefix)


carriers: Registry[Carrier] = Registry("carrier")
