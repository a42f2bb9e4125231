"""National post and its express branch."""
from decimal import Decimal

from parcelflow.carriers.base import Carrier, carriers
from parcelflow.models.shipment import Shipment
from parcelflow.utils.weight import Weight

_POSTAL_DAYS = {"domestic": 2, "eu": 5, "world": 12}


@carriers.register("postal")
class PostalCarrier(Carrier):
    """The default carrier: cheap, goes everywhere."""
    code = "postal"
    tracking_prefix = "PO"
    max_parcel_weight = Weight.from_kg("31.5")

    def transit_days(self, shipment: Shipment) -> int:
        days = _POSTAL_DAYS[shipment.zone]
        return days + 1 if shipment.service_level == "economy" else days


@carriers.register("express")
class ExpressCarrier(Carrier):
    """Air express with a price to match."""
    code = "express"
    tracking_prefix = "EX"
    max_parcel_weight = Weight.from_kg(20)
    rate = Decimal("1.85")

    def transit_days(self, shipment: Shipment) -> int:
        return 3 if shipment.zone == "world" else 1
