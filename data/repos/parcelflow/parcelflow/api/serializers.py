"""Public JSON shapes. Unlike ``to_dict`` they hide storage details."""
from typing import Any, Dict

from parcelflow.models import Address, Parcel, Shipment, TrackingPoint
from parcelflow.services.pricing import Quote
from parcelflow.utils.money import Money
from parcelflow.utils.timeutil import format_iso
from parcelflow.utils.weight import Dimensions, Weight


def parse_parcel(data: Dict[str, Any], currency: str) -> Parcel:
    value = data.get("declared_value")
    return Parcel(
        weight=Weight.from_kg(data["weight_kg"]),
        dimensions=Dimensions(*data["size_cm"]),
        declared_value=Money.of(value, currency) if value else None,
    )


def parse_shipment(data: Dict[str, Any], currency: str, carrier: str) -> Shipment:
    """Build a draft from validated input."""
    return Shipment(
        sender=Address.from_dict(data["sender"]),
        recipient=Address.from_dict(data["recipient"]),
        parcels=[parse_parcel(item, currency) for item in data["parcels"]],
        service_level=data.get("service_level", "standard"),
        carrier=data.get("carrier", carrier),
    )


def serialize_point(point: TrackingPoint) -> Dict[str, Any]:
    label = point.status.value.replace("_", " ").capitalize()
    return {"status": label, "at": format_iso(point.at), "location": point.location}


def serialize_shipment(shipment: Shipment) -> Dict[str, Any]:
    return {
        "id": shipment.id,
        "status": shipment.status.value,
        "to": ", ".join(shipment.recipient.lines()),
        "weight": shipment.weight.format(),
        "price": shipment.price.format() if shipment.price else None,
        "tracking_number": shipment.tracking_number,
    }


def serialize_quote(quote: Quote) -> Dict[str, Any]:
    return {
        "carrier": quote.carrier,
        "transit_days": quote.transit_days,
        "lines": [{"label": line.label, "amount": line.amount.format()} for line in quote.lines],
        "total": quote.total.format(),
    }
