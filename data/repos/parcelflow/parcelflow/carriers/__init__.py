"""Carriers register themselves on import."""
from parcelflow.carriers import local, postal  # noqa: F401
from parcelflow.carriers.base import Carrier, carriers

__all__ = ["Carrier", "carriers"]
