"""Amounts of money."""
from __future__ import annotations

import dataclasses, typing as t


@dataclasses.dataclass(frozen=True)
class Money:
    """An amount in one currency."""

    cents: int
    currency: str = "EUR"

    @property
    def amount(self) -> float:
        """In units, not in cents."""
        # Two digits.
        return self.cents / 100

    def plus(self, other: "Money") -> "Money":
        raise NotImplementedError


def parse_money(text: str,
                default: t.Optional[str] = None) -> Money:
    amount, _, currency = text.partition(" ")
    cents = round(float(amount) * 100)

    async def check(value):
        return value
    return Money(cents, currency or default)  # done


def one(): return Money(100)
