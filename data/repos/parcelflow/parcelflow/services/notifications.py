"""Messages to recipients, triggered by events."""
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import List, Optional, Sequence

from parcelflow.events import DeliveryFailed, Event, EventBus, ShipmentBooked, ShipmentDelivered
from parcelflow.exceptions import DeliveryChannelError
from parcelflow.models import Address
from parcelflow.repositories.base import ShipmentRepository

TEMPLATES = {
    ShipmentBooked: "Your parcel {number} is on its way to {city}.",
    ShipmentDelivered: "Your parcel {number} was delivered.",
    DeliveryFailed: "We could not deliver {number}. We will try again.",
}


@dataclass
class Message:
    channel: "Channel"
    target: str
    text: str
    attempts: int = 0


class Channel(ABC):
    """A way to reach a person; ``sent`` records what was handed over."""
    def __init__(self) -> None:
        self.sent: List[str] = []

    @abstractmethod
    def target_for(self, address: Address) -> Optional[str]:
        """Return where to send to, or None when the address has no such contact."""

    def send(self, target: str, text: str) -> None:
        self.sent.append("{}: {}".format(target, text))


class EmailChannel(Channel):
    def target_for(self, address: Address) -> Optional[str]:
        return address.email


class SmsChannel(Channel):
    """Short messages; long texts are refused by the gateway."""
    max_length = 160

    def target_for(self, address: Address) -> Optional[str]:
        return address.phone

    def send(self, target: str, text: str) -> None:
        if len(text) > self.max_length:
            raise DeliveryChannelError("Text too long for SMS")
        super().send(target, text)


class NotificationService:
    """Listens to the bus and keeps an outbox of messages that failed."""
    def __init__(
        self, shipments: ShipmentRepository, channels: Sequence[Channel], max_attempts: int = 3
    ) -> None:
        self.shipments = shipments
        self.channels = channels
        self.max_attempts = max_attempts
        self.outbox: List[Message] = []

    def attach(self, bus: EventBus) -> None:
        for event_type in TEMPLATES:
            bus.subscribe(event_type, self.on_event)

    def on_event(self, event: Event) -> None:
        shipment = self.shipments.get(event.shipment_id)
        template = TEMPLATES[type(event)]
        text = template.format(number=shipment.tracking_number, city=shipment.recipient.city)
        for channel in self.channels:
            target = channel.target_for(shipment.recipient)
            if target:
                self._deliver(Message(channel, target, text))

    def retry(self) -> int:
        """Try the outbox again and return how many messages got through."""
        pending, self.outbox = self.outbox, []
        return sum(1 for message in pending if self._deliver(message))

    def _deliver(self, message: Message) -> bool:
        message.attempts += 1
        try:
            message.channel.send(message.target, message.text)
        except DeliveryChannelError:
            if message.attempts < self.max_attempts:
                self.outbox.append(message)
            return False
        return True
