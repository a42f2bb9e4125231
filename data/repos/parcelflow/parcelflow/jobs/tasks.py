"""The jobs of the application."""
from datetime import timedelta
from typing import List

from parcelflow.jobs.scheduler import Job
from parcelflow.services.notifications import NotificationService
from parcelflow.services.tracking import TrackingService


class RetryNotificationsJob(Job):
    """Send what is left in the outbox."""
    name = "retry-notifications"
    interval = timedelta(minutes=5)

    def __init__(self, notifications: NotificationService) -> None:
        self.notifications = notifications

    def run(self) -> int:
        return self.notifications.retry()


class StaleShipmentsJob(Job):
    """Remember shipments that were not scanned for a long time."""
    name = "stale-shipments"

    def __init__(self, tracking: TrackingService, hours: int) -> None:
        self.tracking = tracking
        self.hours = hours
        self.reported: List[str] = []

    def run(self) -> int:
        self.reported = [shipment.id for shipment in self.tracking.stale(self.hours)]
        return len(self.reported)
