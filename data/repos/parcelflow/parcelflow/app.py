"""Wires repositories, services, handlers and jobs together."""
import sqlite3
from typing import Any, Optional, Tuple

from parcelflow.api.handlers import shipments as shipment_handlers
from parcelflow.api.handlers import tracking as tracking_handlers
from parcelflow.api.http import Request, Response, Router
from parcelflow.events import EventBus
from parcelflow.jobs.scheduler import Scheduler
from parcelflow.jobs.tasks import RetryNotificationsJob, StaleShipmentsJob
from parcelflow.models import Leg, Tariff, WeightBand
from parcelflow.models.shipment import SERVICE_LEVELS
from parcelflow.repositories import jsonfile, memory, sqlite
from parcelflow.repositories.base import ShipmentRepository, TariffRepository
from parcelflow.services.notifications import EmailChannel, NotificationService, SmsChannel
from parcelflow.services.pricing import PricingService
from parcelflow.services.routing import RoutingService
from parcelflow.services.shipping import ShippingService
from parcelflow.services.tracking import TrackingService
from parcelflow.settings import Settings
from parcelflow.utils.money import Money
from parcelflow.utils.timeutil import Clock
from parcelflow.utils.weight import Weight

DEFAULT_LEGS = (
    Leg("DE-10", "DE", 5), Leg("DE", "FR", 9), Leg("FR", "FR-75", 3),
    Leg("DE", "NL", 6), Leg("NL", "GB", 11), Leg("DE", "AT", 8), Leg("FR", "US", 14, "air"),
)
DEFAULT_PRICES = {"domestic": ("4.90", "8.90"), "eu": ("9.90", "16.90"), "world": ("19", "38")}
LEVEL_FACTORS = dict(zip(SERVICE_LEVELS, ("0.8", "1", "1.6")))

ROUTES = (
    ("POST", "/quotes", shipment_handlers.QuoteHandler),
    ("POST", "/shipments", shipment_handlers.CreateShipmentHandler),
    ("GET", "/shipments", shipment_handlers.ListShipmentsHandler),
    ("GET", "/shipments/{id}", shipment_handlers.GetShipmentHandler),
    ("POST", "/shipments/{id}/book", shipment_handlers.BookShipmentHandler),
    ("POST", "/shipments/{id}/cancel", shipment_handlers.CancelShipmentHandler),
    ("GET", "/shipments/{id}/label", tracking_handlers.LabelHandler),
    ("GET", "/shipments/{id}/route", tracking_handlers.RouteHandler),
    ("POST", "/scans", tracking_handlers.RecordScanHandler),
    ("GET", "/tracking/{number}", tracking_handlers.TrackHandler),
)


def open_repositories(settings: Settings) -> Tuple[ShipmentRepository, TariffRepository]:
    if settings.backend == "sqlite":
        connection = sqlite3.connect(settings.path_for("parcelflow.db"))
        return (sqlite.SqliteShipmentRepository(connection),
                sqlite.SqliteTariffRepository(connection))
    if settings.backend == "json":
        return (jsonfile.JsonShipmentRepository(settings.path_for("shipments.json")),
                jsonfile.JsonTariffRepository(settings.path_for("tariffs.json")))
    return memory.MemoryShipmentRepository(), memory.MemoryTariffRepository()


class Application:
    """Everything one process needs."""
    def __init__(self, settings: Optional[Settings] = None, clock: Optional[Clock] = None) -> None:
        self.settings = settings or Settings()
        self.settings.check()
        self.clock = clock or Clock()
        self.bus = EventBus()
        self.shipments, self.tariffs = open_repositories(self.settings)
        self.pricing = PricingService(self.tariffs, self.settings)
        self.routing = RoutingService(DEFAULT_LEGS)
        self.shipping = ShippingService(self.shipments, self.pricing, self.bus, self.clock)
        self.tracking = TrackingService(self.shipments, self.bus, self.clock)
        self.channels = (EmailChannel(), SmsChannel())
        retries = self.settings.notification_retries
        self.notifications = NotificationService(self.shipments, self.channels, retries)
        self.notifications.attach(self.bus)
        self.router = Router()
        for method, pattern, handler_class in ROUTES:
            self.router.add(method, pattern, handler_class(self))
        self.scheduler = Scheduler(self.clock)
        self.scheduler.add(RetryNotificationsJob(self.notifications))
        self.scheduler.add(StaleShipmentsJob(self.tracking, self.settings.stale_after_hours))
        if self.tariffs.count() == 0:
            self.load_default_tariffs()

    def load_default_tariffs(self) -> None:
        """Fill an empty tariff table from the price list above."""
        for zone, prices in DEFAULT_PRICES.items():
            for level, factor in LEVEL_FACTORS.items():
                small, large = [Money.of(p, self.settings.currency) * factor for p in prices]
                limits = ((Weight.from_kg(2), small), (Weight.from_kg(40), large))
                bands = [WeightBand(limit, price) for limit, price in limits]
                self.tariffs.add(Tariff("{} {}".format(zone, level), zone, level, bands))

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Response:
        return self.router.dispatch(Request(method, path, body or {}, query))
