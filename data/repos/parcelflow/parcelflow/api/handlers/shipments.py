"""Handlers around creating, booking and pricing shipments."""
from typing import Any

from parcelflow.api.handlers.base import Handler
from parcelflow.api.http import Request
from parcelflow.api.serializers import serialize_quote, serialize_shipment
from parcelflow.api.validators import ShipmentValidator


class QuoteHandler(Handler):
    validator = ShipmentValidator

    def handle(self, request: Request) -> Any:
        return serialize_quote(self.app.pricing.quote(self.read_shipment(request)))


class CreateShipmentHandler(Handler):
    validator = ShipmentValidator
    success_status = 201

    def handle(self, request: Request) -> Any:
        return serialize_shipment(self.app.shipping.create(self.read_shipment(request)))


class GetShipmentHandler(Handler):
    def handle(self, request: Request) -> Any:
        return serialize_shipment(self.app.shipments.get(request.params["id"]))


class ListShipmentsHandler(Handler):
    def handle(self, request: Request) -> Any:
        limit = int(request.query.get("limit", "20"))
        offset = int(request.query.get("offset", "0"))
        items = self.app.shipments.all(limit, offset)
        return {"items": [serialize_shipment(item) for item in items]}


class BookShipmentHandler(Handler):
    def handle(self, request: Request) -> Any:
        return serialize_shipment(self.app.shipping.book(request.params["id"]))


class CancelShipmentHandler(Handler):
    def handle(self, request: Request) -> Any:
        reason = request.body.get("reason", "")
        return serialize_shipment(self.app.shipping.cancel(request.params["id"], reason))
