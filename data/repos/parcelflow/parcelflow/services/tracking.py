"""Recording scans and looking up tracking histories."""
from datetime import timedelta
from typing import List

from parcelflow.events import DeliveryFailed, EventBus, ShipmentDelivered, StatusChanged
from parcelflow.models import Shipment, ShipmentStatus
from parcelflow.repositories.base import ShipmentRepository
from parcelflow.utils.timeutil import Clock

MOVING = (ShipmentStatus.IN_TRANSIT, ShipmentStatus.OUT_FOR_DELIVERY)


class TrackingService:
    """Turns scans into status changes and events."""
    def __init__(self, shipments: ShipmentRepository, bus: EventBus, clock: Clock) -> None:
        self.shipments = shipments
        self.bus = bus
        self.clock = clock

    def find(self, tracking_number: str) -> Shipment:
        return self.shipments.by_tracking_number(tracking_number)

    def record_scan(
        self, tracking_number: str, status: ShipmentStatus, location: str = "", note: str = ""
    ) -> Shipment:
        shipment = self.find(tracking_number)
        point = shipment.move_to(status, self.clock.now(), location, note)
        self.shipments.update(shipment)
        fields = (shipment.id, point.at, status.value, location)
        if status is ShipmentStatus.DELIVERED:
            self.bus.publish(ShipmentDelivered(*fields))
        elif status is ShipmentStatus.FAILED:
            self.bus.publish(DeliveryFailed(*fields, reason=note))
        else:
            self.bus.publish(StatusChanged(*fields))
        return shipment

    def stale(self, hours: int) -> List[Shipment]:
        """Moving shipments without a scan for more than ``hours``."""
        limit = self.clock.now() - timedelta(hours=hours)
        return [item for item in self.shipments.by_status(*MOVING) if item.last_update < limit]
