import unittest

from parcelflow.app import Application
from parcelflow.events import Event, StatusChanged
from parcelflow.exceptions import NoRouteError, PricingError, ValidationError
from parcelflow.models import ShipmentStatus
from parcelflow.services.labels import label_formats
from parcelflow.utils.money import Money
from parcelflow.utils.timeutil import FixedClock
from tests.factories import make_address, make_parcel, make_shipment


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.clock = FixedClock()
        self.app = Application(clock=self.clock)

    def book(self, **overrides):
        return self.app.shipping.book(self.app.shipping.create(make_shipment(**overrides)).id)

    def test_quote_adds_fuel_and_insurance(self):
        parcel = make_parcel(declared_value=Money.of(500))
        quote = self.app.pricing.quote(make_shipment(parcels=[parcel]))
        self.assertEqual([line.amount.cents for line in quote.lines], [990, 64, 500])

    def test_carrier_limits(self):
        for carrier, kilograms in (("bike", 1), ("express", 25)):
            shipment = make_shipment(carrier=carrier, parcels=[make_parcel(kilograms)])
            self.assertRaises(PricingError, self.app.pricing.quote, shipment)

    def test_route_uses_local_hubs(self):
        route = self.app.routing.plan(make_shipment())
        self.assertEqual(route.hubs, ["DE-10", "DE", "FR", "FR-75"])
        self.assertRaises(NoRouteError, self.app.routing.shortest, "DE", "NZ")

    def test_booking_sends_an_email(self):
        shipment = self.book()
        self.assertIn(shipment.tracking_number, self.app.channels[0].sent[0])
        self.assertTrue(shipment.tracking_number.startswith("PO"))

    def test_failed_sms_is_retried_until_limit(self):
        self.book(recipient=make_address(phone="+4930123456", city="B" * 200))
        self.assertEqual(len(self.app.notifications.outbox), 1)
        for _ in range(2):
            self.assertEqual(self.app.notifications.retry(), 0)
        self.assertEqual(self.app.notifications.outbox, [])

    def test_stale_job_runs_when_due(self):
        shipment = self.book()
        self.app.tracking.record_scan(shipment.tracking_number, ShipmentStatus.IN_TRANSIT)
        self.assertEqual(self.app.scheduler.run_pending(), {})
        self.clock.advance(hours=73)
        self.assertEqual(self.app.scheduler.run_pending()["stale-shipments"], 1)

    def test_bus_reaches_base_class_listeners_and_survives_errors(self):
        seen = []
        self.app.bus.subscribe(StatusChanged, lambda event: 1 / 0)
        self.app.bus.subscribe(Event, seen.append)
        with self.assertLogs("parcelflow.events.bus", "WARNING"):
            self.app.bus.publish(StatusChanged("x", self.clock.now(), "booked"))
        self.assertEqual((len(seen), len(self.app.bus.errors)), (1, 1))

    def test_labels(self):
        parcels = [make_parcel(), make_parcel(2)]
        shipment = self.book(recipient=make_address(name="A & B"), parcels=parcels)
        self.assertIn("2/2", label_formats.create("text").render(shipment)[1])
        self.assertIn("A &amp; B", label_formats.create("html").render(shipment)[0])
        with self.assertRaises(ValidationError):
            label_formats.create("text").render(make_shipment())
