"""Domain models."""
from parcelflow.models.address import Address, zone_between  # noqa: F401
from parcelflow.models.parcel import Parcel  # noqa: F401
from parcelflow.models.route import Leg, Route  # noqa: F401
from parcelflow.models.shipment import Shipment, ShipmentStatus, TrackingPoint  # noqa: F401
from parcelflow.models.tariff import Tariff, WeightBand  # noqa: F401
