"""Compares recomputed values with the program's."""

import copy
import dataclasses
import math
import typing


@dataclasses.dataclass(frozen=True)
class Between:
    """The bounds of a number that depends on chance."""

    low: float
    high: float

    def matches(self, found):
        return self.low <= found <= self.high


@dataclasses.dataclass(frozen=True)
class Near:
    """A sum of many numbers, whose order may change its last digits."""

    value: float

    def matches(self, found):
        return found is not None and math.isclose(self.value, found, rel_tol=1e-12, abs_tol=1e-12)


def matches(expected, found):
    return expected.matches(found) if isinstance(expected, (Between, Near)) else expected == found


def shorten(value):
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)"


def differing(expected, found):
    """The parts of two long lists or texts from shortly before the first difference, for a message."""
    if isinstance(expected, (str, list)) and type(expected) is type(found):
        place = next(
            (place for place, pair in enumerate(zip(expected, found)) if pair[0] != pair[1]), min(len(expected), len(found))
        )
        if place > 20:
            return f" from place {place}", expected[place - 10 :], found[place - 10 :]
    return "", expected, found


@dataclasses.dataclass
class Part:
    """One kind of results: the program's records, the function that reads values from them, and the expected values."""

    name: str
    records: typing.Any
    values: typing.Callable  # records to {key: value}
    expected: dict
    damages: dict  # name of a planted error: function that makes it in the records

    def differences(self, records):
        found = self.values(records)
        for key in sorted(self.expected.keys() | found.keys(), key=str):
            if key not in found:
                yield key, f"the program has none, expected {shorten(self.expected[key])}"
            elif key not in self.expected:
                yield key, f"the program has one too many, {shorten(found[key])}"
            elif not matches(self.expected[key], found[key]):
                where, expected, value = differing(self.expected[key], found[key])
                yield key, f"{where} expected {shorten(expected)}, found {shorten(value)}".strip()

    def compare(self, most=5):
        """Prints the numbers of values and of differences; false if any value differs."""
        differences = list(self.differences(self.records))
        print(f"{self.name}: {len(self.expected)} values, {len(differences)} differ")
        for key, difference in differences[:most]:
            print(f"    {' '.join(map(str, key))}: {difference}")
        return not differences

    def undetected(self):
        """Names of the planted errors that the comparison misses."""
        for name, damage in self.damages.items():
            records = copy.deepcopy(self.records)
            damage(records)
            if not any(True for _ in self.differences(records)):
                yield f"{self.name}: {name}"
