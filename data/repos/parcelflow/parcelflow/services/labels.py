"""Shipping labels in several formats."""
import html
from abc import ABC, abstractmethod
from typing import List

from parcelflow.exceptions import ValidationError
from parcelflow.models import Parcel, Shipment
from parcelflow.utils.registry import Registry

label_formats: "Registry[LabelRenderer]" = Registry("label format")


class LabelRenderer(ABC):
    """Renders one label for each parcel."""
    def render(self, shipment: Shipment) -> List[str]:
        if not shipment.tracking_number:
            raise ValidationError.single("tracking_number", "shipment is not booked")
        total = len(shipment.parcels)
        return [
            self.render_parcel(shipment, parcel, "{}/{}".format(index, total))
            for index, parcel in enumerate(shipment.parcels, start=1)
        ]

    @abstractmethod
    def render_parcel(self, shipment: Shipment, parcel: Parcel, position: str) -> str:
        """Return the label of one parcel."""


@label_formats.register("text")
class TextLabelRenderer(LabelRenderer):
    """Plain text for the console."""
    def render_parcel(self, shipment: Shipment, parcel: Parcel, position: str) -> str:
        header = "{}  {}".format(shipment.tracking_number, position)
        footer = "{} / {}".format(shipment.service_level.upper(), parcel.weight.format())
        return "\n".join([header] + shipment.recipient.lines() + [footer])


@label_formats.register("html")
class HtmlLabelRenderer(LabelRenderer):
    """A div that the web shop can print."""
    def render_parcel(self, shipment: Shipment, parcel: Parcel, position: str) -> str:
        lines = [html.escape(line) for line in shipment.recipient.lines()]
        title = "<b>{}</b> ({})".format(shipment.tracking_number, position)
        return '<div class="label">{}</div>'.format("<br>".join([title] + lines))
