"""Repositories that keep everything in a dictionary."""
import copy
from typing import Dict, Iterator, Optional

from parcelflow.repositories.base import Repository, ShipmentRepository, T, TariffRepository


class MemoryRepository(Repository[T]):
    """Stores deep copies, so callers cannot change stored entities by accident."""
    def __init__(self) -> None:
        self._items: Dict[str, T] = {}

    def _load(self, entity_id: str) -> Optional[T]:
        return copy.deepcopy(self._items.get(entity_id))

    def _store(self, entity: T) -> None:
        self._items[entity.id] = copy.deepcopy(entity)

    def _remove(self, entity_id: str) -> None:
        del self._items[entity_id]

    def _iterate(self) -> Iterator[T]:
        for entity in list(self._items.values()):
            yield copy.deepcopy(entity)


class MemoryShipmentRepository(MemoryRepository, ShipmentRepository):
    """Shipments in memory."""


class MemoryTariffRepository(MemoryRepository, TariffRepository):
    """Tariffs in memory."""
