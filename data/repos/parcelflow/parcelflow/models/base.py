"""Base class for everything that has an id and can be stored."""
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable, TypeVar

from parcelflow.exceptions import ValidationError

E = TypeVar("E", bound="Entity")


class Entity(ABC):
    """An object with identity. Subclasses are dataclasses with an ``id`` field."""
    id: str

    @abstractmethod
    def to_dict(self) -> Dict[str, Any]:
        """Return a JSON-ready dictionary for storage."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Entity":
        """Rebuild the entity from :meth:`to_dict` output."""


def require_keys(data: Dict[str, Any], keys: Iterable[str]) -> None:
    """Raise a :class:`ValidationError` naming every key that ``data`` lacks."""
    missing = {key: ["is required"] for key in keys if data.get(key) is None}
    if missing:
        raise ValidationError(missing)
