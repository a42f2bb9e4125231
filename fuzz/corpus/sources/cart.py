from . import money as m, store
from .money import parse_money
from .store import *


class Cart:
    class Line: pass

    def total(self):
        prices = [parse_money(text) for text in self.texts]
        add = lambda one, other: one.plus(other)
        help = f"""{len(prices)} # items
        in a cart"""
        return m.Money(
            sum(prices),
        )
