"""Exact money arithmetic on integer cents."""
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import total_ordering
from typing import Any, Dict, Iterable, Union

from parcelflow.exceptions import CurrencyMismatchError

Number = Union[int, str, Decimal]


def _round(value: Decimal) -> int:
    return int(value.quantize(Decimal("1"), rounding=ROUND_HALF_UP))


@total_ordering
@dataclass(frozen=True)
class Money:
    """An amount in a currency. Never mixes currencies silently."""
    cents: int
    currency: str = "EUR"

    @classmethod
    def of(cls, amount: Number, currency: str = "EUR") -> "Money":
        """Create from a decimal amount such as ``"12.50"``."""
        return cls(_round(Decimal(str(amount)) * 100), currency)

    def _check(self, other: "Money") -> None:
        if self.currency != other.currency:
            message = "Cannot combine {} with {}".format(self.currency, other.currency)
            raise CurrencyMismatchError(message)

    def __add__(self, other: "Money") -> "Money":
        self._check(other)
        return Money(self.cents + other.cents, self.currency)

    def __mul__(self, factor: Number) -> "Money":
        return Money(_round(Decimal(self.cents) * Decimal(str(factor))), self.currency)

    def __lt__(self, other: "Money") -> bool:
        self._check(other)
        return self.cents < other.cents

    def percent(self, rate: Number) -> "Money":
        """Return ``rate`` percent of this amount, rounded half up."""
        return self * (Decimal(str(rate)) / Decimal(100))

    def format(self) -> str:
        return "{} {:.2f}".format(self.currency, Decimal(self.cents) / 100)

    def to_dict(self) -> Dict[str, Any]:
        return {"cents": self.cents, "currency": self.currency}

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Money":
        return cls(int(data["cents"]), data.get("currency", "EUR"))


def sum_money(amounts: Iterable[Money], currency: str = "EUR") -> Money:
    """Add up amounts; an empty iterable gives zero in ``currency``."""
    total = Money(0, currency)
    for amount in amounts:
        total = total + amount
    return total
