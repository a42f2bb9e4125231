"""Shipments, their status machine and their tracking history."""
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Dict, List, Optional

from parcelflow.exceptions import InvalidTransitionError, ValidationError
from parcelflow.models.address import Address, zone_between
from parcelflow.models.base import Entity, require_keys
from parcelflow.models.parcel import Parcel
from parcelflow.utils.ids import new_id
from parcelflow.utils.money import Money
from parcelflow.utils.timeutil import Clock, format_iso, parse_iso
from parcelflow.utils.weight import Weight, total_weight

SERVICE_LEVELS = ("economy", "standard", "express")


class ShipmentStatus(str, Enum):
    """Life cycle of a shipment."""
    DRAFT = "draft"
    BOOKED = "booked"
    IN_TRANSIT = "in_transit"
    OUT_FOR_DELIVERY = "out_for_delivery"
    DELIVERED = "delivered"
    FAILED = "failed"
    RETURNED = "returned"
    CANCELLED = "cancelled"


TRANSITIONS = {
    ShipmentStatus.DRAFT: {ShipmentStatus.BOOKED, ShipmentStatus.CANCELLED},
    ShipmentStatus.BOOKED: {ShipmentStatus.IN_TRANSIT, ShipmentStatus.CANCELLED},
    # Several hub scans in a row keep a shipment in transit.
    ShipmentStatus.IN_TRANSIT: {
        ShipmentStatus.IN_TRANSIT,
        ShipmentStatus.OUT_FOR_DELIVERY,
        ShipmentStatus.RETURNED,
    },
    ShipmentStatus.OUT_FOR_DELIVERY: {ShipmentStatus.DELIVERED, ShipmentStatus.FAILED},
    ShipmentStatus.FAILED: {ShipmentStatus.OUT_FOR_DELIVERY, ShipmentStatus.RETURNED},
    ShipmentStatus.DELIVERED: set(),
    ShipmentStatus.RETURNED: set(),
    ShipmentStatus.CANCELLED: set(),
}


@dataclass(frozen=True)
class TrackingPoint:
    """One line of the tracking history."""
    status: ShipmentStatus
    at: datetime
    location: str = ""
    note: str = ""

    def to_dict(self) -> Dict[str, Any]:
        return dict(vars(self), status=self.status.value, at=format_iso(self.at))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "TrackingPoint":
        require_keys(data, ("status", "at"))
        status, moment = ShipmentStatus(data["status"]), parse_iso(data["at"])
        return cls(status, moment, data.get("location", ""), data.get("note", ""))


@dataclass
class Shipment(Entity):
    """One or more parcels that travel together from sender to recipient."""
    sender: Address
    recipient: Address
    parcels: List[Parcel]
    service_level: str = "standard"
    carrier: str = "postal"
    status: ShipmentStatus = ShipmentStatus.DRAFT
    tracking_number: Optional[str] = None
    price: Optional[Money] = None
    history: List[TrackingPoint] = field(default_factory=list)
    created_at: datetime = field(default_factory=lambda: Clock().now())
    id: str = field(default_factory=lambda: new_id("shp"))

    def __post_init__(self) -> None:
        if not self.parcels:
            raise ValidationError.single("parcels", "at least one parcel is required")
        if self.service_level not in SERVICE_LEVELS:
            raise ValidationError.single("service_level", "unknown service level")

    @property
    def zone(self) -> str:
        return zone_between(self.sender, self.recipient)

    @property
    def weight(self) -> Weight:
        return total_weight(parcel.weight for parcel in self.parcels)

    @property
    def last_update(self) -> datetime:
        return self.history[-1].at if self.history else self.created_at

    def move_to(
        self, status: ShipmentStatus, at: datetime, location: str = "", note: str = ""
    ) -> TrackingPoint:
        """Change the status and append a tracking point."""
        if status not in TRANSITIONS[self.status]:
            raise InvalidTransitionError(self.status.value, status.value)
        point = TrackingPoint(status, at, location, note)
        self.status = status
        self.history.append(point)
        return point

    def to_dict(self) -> Dict[str, Any]:
        return {
            "id": self.id,
            "sender": self.sender.to_dict(),
            "recipient": self.recipient.to_dict(),
            "parcels": [parcel.to_dict() for parcel in self.parcels],
            "service_level": self.service_level,
            "carrier": self.carrier,
            "status": self.status.value,
            "tracking_number": self.tracking_number,
            "price": self.price.to_dict() if self.price else None,
            "history": [point.to_dict() for point in self.history],
            "created_at": format_iso(self.created_at),
        }

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Shipment":
        require_keys(data, ("id", "sender", "recipient", "parcels", "created_at"))
        price = data.get("price")
        return cls(
            sender=Address.from_dict(data["sender"]),
            recipient=Address.from_dict(data["recipient"]),
            parcels=[Parcel.from_dict(item) for item in data["parcels"]],
            service_level=data.get("service_level", "standard"),
            carrier=data.get("carrier", "postal"),
            status=ShipmentStatus(data.get("status", "draft")),
            tracking_number=data.get("tracking_number"),
            price=Money.from_dict(price) if price else None,
            history=[TrackingPoint.from_dict(item) for item in data.get("history", [])],
            created_at=parse_iso(data["created_at"]),
            id=data["id"],
        )
