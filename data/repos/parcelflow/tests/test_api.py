import contextlib
import io
import tempfile
import unittest

from parcelflow import cli
from parcelflow.app import Application
from parcelflow.settings import Settings
from tests.factories import make_address


class ApiTest(unittest.TestCase):
    def setUp(self):
        self.app = Application()
        self.body = {"sender": make_address().to_dict(), "recipient": make_address().to_dict(),
                     "parcels": [{"weight_kg": 1.5, "size_cm": [20, 20, 20]}]}

    def create(self):
        return self.app.call("POST", "/shipments", self.body).body["id"]

    def test_quote(self):
        response = self.app.call("POST", "/quotes", self.body)
        self.assertEqual((response.status, response.body["total"]), (200, "EUR 5.22"))

    def test_validation_errors_have_paths(self):
        self.body["parcels"][0]["size_cm"] = [1, 2]
        self.body["sender"]["email"] = "nobody"
        response = self.app.call("POST", "/shipments", self.body)
        self.assertEqual(response.status, 422)
        errors = response.body["error"]["details"]["errors"]
        self.assertEqual(sorted(errors), ["parcels.0.size_cm", "sender.email"])

    def test_book_scan_and_track(self):
        booked = self.app.call("POST", "/shipments/{}/book".format(self.create())).body
        number = booked["tracking_number"]
        scan = {"tracking_number": number, "status": "in_transit", "location": "Leipzig"}
        self.assertEqual(self.app.call("POST", "/scans", scan).status, 201)
        history = self.app.call("GET", "/tracking/" + number).body["history"]
        self.assertEqual([item["status"] for item in history], ["Booked", "In transit"])

    def test_cancel_twice_conflicts(self):
        path = "/shipments/{}/cancel".format(self.create())
        statuses = [self.app.call("POST", path).status for _ in range(2)]
        self.assertEqual(statuses, [200, 409])

    def test_unknown_path_and_shipment(self):
        for path in ("/nowhere", "/shipments/shp_x", "/shipments/shp_x/route"):
            self.assertEqual(self.app.call("GET", path).status, 404)

    def test_json_backend_persists_shipments(self):
        with tempfile.TemporaryDirectory() as folder:
            self.app = Application(Settings(backend="json", data_dir=folder))
            created = self.create()
            again = Application(self.app.settings)
            self.assertEqual(again.shipments.get(created).weight.grams, 1500)

    def test_cli_quote(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = cli.main("quote --from DE:10115 --to US:10001 --weight 1".split())
        self.assertEqual(code, 0)
        self.assertIn("EUR 20.24", output.getvalue())
