import unittest

from tests.helpers import START
from tidewatch.errors import RegistryError, ValidationError
from tidewatch.registry import Registry
from tidewatch.timeutil import format_duration, parse_duration, parse_timestamp
from tidewatch.units import convert
from tidewatch.validation import require_code, require_keys, require_window


class TimeTest(unittest.TestCase):
    def test_timestamp_is_converted_to_utc(self):
        self.assertEqual(parse_timestamp("2021-03-01T01:00:00+01:00"), START)
        self.assertEqual(parse_timestamp("2021-03-01T00:00:00Z"), START)

    def test_duration_round_trip(self):
        for text in ("10m", "1h30m", "2d", "45s"):
            self.assertEqual(format_duration(parse_duration(text)), text)

    def test_bad_duration(self):
        for text in ("", "10", "5 weeks", "m10"):
            with self.subTest(text=text), self.assertRaises(ValidationError):
                parse_duration(text)


class UnitTest(unittest.TestCase):
    def test_convert(self):
        self.assertAlmostEqual(convert(250, "cm", "m"), 2.5)
        self.assertAlmostEqual(convert(1, "m", "ft"), 3.28084, places=5)


class ValidationTest(unittest.TestCase):
    def test_window_must_be_odd_integer(self):
        for value in (4, 1, 5.0, True):
            with self.subTest(value=value), self.assertRaises(ValidationError):
                require_window("window", value, minimum=3, odd=True)

    def test_error_names_the_field(self):
        with self.assertRaises(ValidationError) as caught:
            require_code("code", "kiel harbour")
        self.assertEqual(caught.exception.field, "code")

    def test_unknown_key(self):
        with self.assertRaisesRegex(ValidationError, "depth: unknown key"):
            require_keys({"code": 1, "depth": 2}, ["code"], optional=[])


class RegistryTest(unittest.TestCase):
    def test_register_sets_kind_once(self):
        registry = Registry("thing")
        cls = registry.register("plain")(type("Plain", (), {}))
        self.assertEqual((cls.kind, registry.names()), ("plain", ["plain"]))
        with self.assertRaises(RegistryError):
            registry.add("plain", cls)

    def test_unknown_name_lists_known_ones(self):
        with self.assertRaisesRegex(RegistryError, "unknown thing 'x' .known: none."):
            Registry("thing").create("x")
