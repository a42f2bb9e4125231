"""Event classes. Handlers may subscribe to a base class to get all its subclasses."""
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Event:
    """Something that happened to a shipment."""
    shipment_id: str
    at: datetime


@dataclass(frozen=True)
class ShipmentBooked(Event):
    tracking_number: str


@dataclass(frozen=True)
class ShipmentCancelled(Event):
    reason: str = ""


@dataclass(frozen=True)
class StatusChanged(Event):
    """Published for every scan; final outcomes have their own subclasses."""
    status: str
    location: str = ""


@dataclass(frozen=True)
class ShipmentDelivered(StatusChanged):
    pass


@dataclass(frozen=True)
class DeliveryFailed(StatusChanged):
    reason: str = ""
