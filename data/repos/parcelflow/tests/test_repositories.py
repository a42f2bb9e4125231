import sqlite3
import tempfile
import unittest

from parcelflow.exceptions import ConflictError, NotFoundError
from parcelflow.models import ShipmentStatus, Tariff, WeightBand
from parcelflow.repositories.jsonfile import JsonShipmentRepository
from parcelflow.repositories.memory import MemoryShipmentRepository
from parcelflow.repositories.sqlite import SqliteShipmentRepository, SqliteTariffRepository
from parcelflow.utils.money import Money
from parcelflow.utils.weight import Weight
from tests.factories import make_shipment


class ShipmentRepositoryCases:
    """The same cases run against every back end."""

    def test_add_and_get(self):
        shipment = self.repository.add(make_shipment())
        self.assertEqual(self.repository.get(shipment.id), shipment)
        self.assertRaises(ConflictError, self.repository.add, shipment)

    def test_update_and_find(self):
        shipment = self.repository.add(make_shipment())
        shipment.status, shipment.tracking_number = ShipmentStatus.BOOKED, "PO1"
        self.repository.update(shipment)
        self.assertEqual(self.repository.by_tracking_number("PO1").id, shipment.id)
        self.assertEqual(self.repository.by_status(ShipmentStatus.DRAFT), [])

    def test_delete(self):
        shipment = self.repository.add(make_shipment())
        self.repository.delete(shipment.id)
        self.assertRaises(NotFoundError, self.repository.get, shipment.id)

    def test_paging_keeps_order(self):
        added = [self.repository.add(make_shipment()).id for _ in range(3)]
        self.assertEqual([item.id for item in self.repository.all(1, offset=1)], added[1:2])


class MemoryShipmentRepositoryTest(ShipmentRepositoryCases, unittest.TestCase):
    def setUp(self):
        self.repository = MemoryShipmentRepository()


class JsonShipmentRepositoryTest(ShipmentRepositoryCases, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = JsonShipmentRepository(folder.name + "/shipments.json")


class SqliteShipmentRepositoryTest(ShipmentRepositoryCases, unittest.TestCase):
    def setUp(self):
        connection = sqlite3.connect(":memory:")
        self.addCleanup(connection.close)
        self.connection = connection
        self.repository = SqliteShipmentRepository(connection)

    def test_inactive_tariffs_are_skipped(self):
        tariffs = SqliteTariffRepository(self.connection)
        bands = [WeightBand(Weight.from_kg(5), Money.of("4.90"))]
        tariffs.add(Tariff("Old", "eu", "standard", bands, active=False))
        current = tariffs.add(Tariff("New", "eu", "standard", bands))
        self.assertEqual(tariffs.for_zone("eu", "standard"), current)
