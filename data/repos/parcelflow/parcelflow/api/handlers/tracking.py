"""Handlers for scans, histories, labels and routes."""
from typing import Any

from parcelflow.api.handlers.base import Handler
from parcelflow.api.http import Request
from parcelflow.api.serializers import serialize_point, serialize_shipment
from parcelflow.api.validators import ScanValidator
from parcelflow.models import ShipmentStatus
from parcelflow.services.labels import label_formats


class RecordScanHandler(Handler):
    validator = ScanValidator
    success_status = 201

    def handle(self, request: Request) -> Any:
        body = request.body
        status, location = ShipmentStatus(body["status"]), body.get("location", "")
        number, note = body["tracking_number"], body.get("note", "")
        shipment = self.app.tracking.record_scan(number, status, location, note)
        return serialize_shipment(shipment)


class TrackHandler(Handler):
    def handle(self, request: Request) -> Any:
        shipment = self.app.tracking.find(request.params["number"])
        return {"history": [serialize_point(point) for point in shipment.history]}


class LabelHandler(Handler):
    def handle(self, request: Request) -> Any:
        renderer = label_formats.create(request.query.get("format", "text"))
        return {"labels": renderer.render(self.app.shipments.get(request.params["id"]))}


class RouteHandler(Handler):
    def handle(self, request: Request) -> Any:
        route = self.app.routing.plan(self.app.shipments.get(request.params["id"]))
        return {"hubs": route.hubs, "hours": route.total_hours}
