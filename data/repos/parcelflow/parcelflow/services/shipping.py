"""Booking and cancelling shipments."""
from parcelflow.carriers import carriers
from parcelflow.events import EventBus, ShipmentBooked, ShipmentCancelled
from parcelflow.models import Shipment, ShipmentStatus
from parcelflow.repositories.base import ShipmentRepository
from parcelflow.services.pricing import PricingService
from parcelflow.utils.timeutil import Clock


class ShippingService:
    """Moves shipments between draft, booked and cancelled."""
    def __init__(
        self, shipments: ShipmentRepository, pricing: PricingService, bus: EventBus, clock: Clock
    ) -> None:
        self.shipments = shipments
        self.pricing = pricing
        self.bus = bus
        self.clock = clock

    def create(self, shipment: Shipment) -> Shipment:
        shipment.created_at = self.clock.now()
        return self.shipments.add(shipment)

    def book(self, shipment_id: str) -> Shipment:
        """Fix the price and issue a tracking number."""
        shipment = self.shipments.get(shipment_id)
        shipment.price = self.pricing.quote(shipment).total
        shipment.move_to(ShipmentStatus.BOOKED, self.clock.now())
        shipment.tracking_number = carriers.create(shipment.carrier).issue_tracking_number()
        self.shipments.update(shipment)
        self.bus.publish(ShipmentBooked(shipment.id, self.clock.now(), shipment.tracking_number))
        return shipment

    def cancel(self, shipment_id: str, reason: str = "") -> Shipment:
        shipment = self.shipments.get(shipment_id)
        shipment.move_to(ShipmentStatus.CANCELLED, self.clock.now(), note=reason)
        self.shipments.update(shipment)
        self.bus.publish(ShipmentCancelled(shipment.id, self.clock.now(), reason))
        return shipment
