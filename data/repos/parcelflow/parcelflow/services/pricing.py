"""Quotes: a tariff price, adjusted by the carrier, plus surcharge rules."""
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import List, Optional, Sequence

from parcelflow.carriers import carriers
from parcelflow.models import Shipment
from parcelflow.repositories.base import TariffRepository
from parcelflow.settings import Settings
from parcelflow.utils.money import Money, sum_money


@dataclass(frozen=True)
class QuoteLine:
    label: str
    amount: Money


@dataclass(frozen=True)
class Quote:
    """The price of a shipment, line by line."""
    carrier: str
    transit_days: int
    lines: List[QuoteLine]

    @property
    def total(self) -> Money:
        return sum_money((line.amount for line in self.lines), self.lines[0].amount.currency)


class PricingRule(ABC):
    """Adds at most one line to a quote."""
    label = ""

    @abstractmethod
    def amount(self, shipment: Shipment, base: Money) -> Optional[Money]:
        """Return the amount to add, or None when the rule does not apply."""


class FuelSurcharge(PricingRule):
    """A percentage of the base price."""
    label = "Fuel surcharge"

    def __init__(self, percent: Decimal) -> None:
        self.percent = percent

    def amount(self, shipment: Shipment, base: Money) -> Optional[Money]:
        return base.percent(self.percent) if self.percent else None


class InsuranceFee(PricingRule):
    """One percent of the declared value, with a minimum."""
    label = "Insurance"

    def __init__(self, minimum: Money) -> None:
        self.minimum = minimum

    def amount(self, shipment: Shipment, base: Money) -> Optional[Money]:
        values = [parcel.declared_value for parcel in shipment.parcels if parcel.declared_value]
        if not values:
            return None
        return max(sum_money(values, base.currency).percent(1), self.minimum)


class PricingService:
    """Works out quotes from stored tariffs."""
    def __init__(self, tariffs: TariffRepository, settings: Settings) -> None:
        self.tariffs = tariffs
        self.settings = settings
        self.rules: Sequence[PricingRule] = (
            FuelSurcharge(settings.fuel_surcharge_percent),
            InsuranceFee(Money.of("2.00", settings.currency)),
        )

    def quote(self, shipment: Shipment) -> Quote:
        carrier = carriers.create(shipment.carrier)
        carrier.ensure_supports(shipment)
        base = carrier.adjust(self._base_price(shipment))
        lines = [QuoteLine("Base price", base)]
        for rule in self.rules:
            amount = rule.amount(shipment, base)
            if amount is not None:
                lines.append(QuoteLine(rule.label, amount))
        return Quote(carrier.code, carrier.transit_days(shipment), lines)

    def _base_price(self, shipment: Shipment) -> Money:
        tariff = self.tariffs.for_zone(shipment.zone, shipment.service_level)
        divisor = self.settings.volumetric_divisor
        prices = [tariff.price_for(item.chargeable_weight(divisor)) for item in shipment.parcels]
        return sum_money(prices, self.settings.currency)
