"""Bike couriers inside one city."""
from decimal import Decimal

from parcelflow.carriers.base import Carrier, carriers
from parcelflow.models.shipment import Shipment
from parcelflow.utils.weight import Weight


@carriers.register("bike")
class BikeCourier(Carrier):
    """Same-day delivery between two addresses of the same area."""
    code = "bike"
    tracking_prefix = "BK"
    max_parcel_weight = Weight.from_kg(8)
    zones = ("domestic",)
    rate = Decimal("1.10")

    def supports(self, shipment: Shipment) -> bool:
        same_area = shipment.sender.area == shipment.recipient.area
        return same_area and super().supports(shipment)

    def transit_days(self, shipment: Shipment) -> int:
        return 0
