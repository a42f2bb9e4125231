"""Builders for test data; every field can be overridden."""
from parcelflow.models import Address, Parcel, Shipment
from parcelflow.utils.weight import Dimensions, Weight


def make_address(**overrides):
    values = dict(name="Ada Brook", street="Lindenweg 4", city="Berlin", postcode="10115",
                  country="DE", email="ada@example.org")
    values.update(overrides)
    return Address(**values)


def make_parcel(kilograms=1, size=(20, 15, 10), **overrides):
    return Parcel(Weight.from_kg(kilograms), Dimensions(*size), **overrides)


def make_shipment(**overrides):
    paris = make_address(name="Luc Petit", city="Paris", postcode="75001", country="FR")
    values = dict(sender=make_address(), recipient=paris, parcels=[make_parcel()])
    values.update(overrides)
    return Shipment(**values)
