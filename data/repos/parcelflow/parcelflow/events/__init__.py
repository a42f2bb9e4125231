"""Domain events and the bus that carries them."""
from parcelflow.events.bus import EventBus  # noqa: F401
from parcelflow.events.types import (  # noqa: F401
    DeliveryFailed, Event, ShipmentBooked, ShipmentCancelled, ShipmentDelivered, StatusChanged
)
