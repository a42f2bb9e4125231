import unittest

from parcelflow.exceptions import ConfigurationError, CurrencyMismatchError, NotFoundError
from parcelflow.settings import Settings
from parcelflow.utils import ids, text
from parcelflow.utils.money import Money, sum_money
from parcelflow.utils.registry import Registry


class HelperTest(unittest.TestCase):
    def test_money_rounds_half_up(self):
        self.assertEqual(Money.of("0.05").percent(10).cents, 1)

    def test_money_refuses_mixed_currencies(self):
        with self.assertRaises(CurrencyMismatchError):
            Money(1, "EUR") + Money(1, "USD")

    def test_sum_money_keeps_currency_when_empty(self):
        self.assertEqual(sum_money([], "GBP"), Money(0, "GBP"))

    def test_tracking_number_check_digit(self):
        number = ids.new_tracking_number("po")
        wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
        self.assertTrue(ids.is_tracking_number(number))
        self.assertFalse(ids.is_tracking_number(wrong))

    def test_postcodes(self):
        for country, code, valid in (("NL", "1012 ab", True), ("DE", "123", False)):
            with self.subTest(country=country):
                self.assertEqual(text.is_postcode(country, code), valid)

    def test_registry_rejects_duplicates_and_unknown_names(self):
        registry = Registry("thing")
        registry.register("a")(dict)
        self.assertRaises(ConfigurationError, registry.register("a"), list)
        self.assertRaises(NotFoundError, registry.get, "b")

    def test_settings_from_env(self):
        settings = Settings.from_env({"PARCELFLOW_BACKEND": "json", "HOME": "/"})
        self.assertEqual(settings.backend, "json")

    def test_settings_reject_bad_values(self):
        for values in ({"backend": "cloud"}, {"volumetric_divisor": "x"}, {"colour": "red"}):
            with self.subTest(values=values), self.assertRaises(ConfigurationError):
                Settings.from_mapping(values)
