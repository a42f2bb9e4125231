import unittest

from parcelflow.exceptions import InvalidTransitionError, PricingError, ValidationError
from parcelflow.models import Leg, Route, Shipment, ShipmentStatus, Tariff, WeightBand
from parcelflow.utils.money import Money
from parcelflow.utils.timeutil import FixedClock
from parcelflow.utils.weight import Weight
from tests.factories import make_address, make_parcel, make_shipment


class ModelTest(unittest.TestCase):
    def test_address_is_normalised(self):
        address = make_address(name=" Ada  Brook ", country="de", postcode="10 115")
        self.assertEqual(address, make_address())

    def test_address_rejects_bad_postcode(self):
        with self.assertRaises(ValidationError) as caught:
            make_address(postcode="ABC")
        self.assertIn("postcode", caught.exception.errors)

    def test_bulky_parcel_is_charged_by_volume(self):
        parcel = make_parcel(1, size=(50, 40, 30))
        self.assertEqual(parcel.chargeable_weight(), Weight.from_kg(12))

    def test_shipment_zones(self):
        for country, code, zone in (("DE", "80331", "domestic"), ("US", "10001", "world")):
            recipient = make_address(country=country, postcode=code)
            self.assertEqual(make_shipment(recipient=recipient).zone, zone)

    def test_shipment_round_trip(self):
        shipment = make_shipment(price=Money.of("7.20"))
        shipment.move_to(ShipmentStatus.BOOKED, FixedClock().now(), "Berlin")
        self.assertEqual(Shipment.from_dict(shipment.to_dict()), shipment)

    def test_draft_cannot_be_delivered(self):
        with self.assertRaises(InvalidTransitionError):
            make_shipment().move_to(ShipmentStatus.DELIVERED, FixedClock().now())

    def test_tariff_uses_first_fitting_band(self):
        bands = [WeightBand(Weight.from_kg(kg), Money.of(kg)) for kg in (10, 2)]
        tariff = Tariff("Test", "eu", "standard", bands)
        self.assertEqual(tariff.price_for(Weight.from_kg(2)), Money.of(2))
        self.assertRaises(PricingError, tariff.price_for, Weight.from_kg(11))

    def test_route_legs_must_connect(self):
        self.assertRaises(ValidationError, Route, "s", [Leg("A", "B", 1), Leg("C", "D", 1)])
