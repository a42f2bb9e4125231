"""Abstract repositories; back ends fill in four primitive operations."""
from abc import ABC, abstractmethod
from typing import Callable, Generic, Iterator, List, Optional, Type, TypeVar

from parcelflow.exceptions import ConflictError, NotFoundError
from parcelflow.models.base import Entity
from parcelflow.models.shipment import Shipment, ShipmentStatus
from parcelflow.models.tariff import Tariff

T = TypeVar("T", bound=Entity)


class Repository(ABC, Generic[T]):
    """A collection of entities of one class, keyed by id."""
    model_class: Type[T]

    @abstractmethod
    def _load(self, entity_id: str) -> Optional[T]:
        """Return the stored entity or None."""

    @abstractmethod
    def _store(self, entity: T) -> None:
        """Insert or replace the entity."""

    @abstractmethod
    def _remove(self, entity_id: str) -> None:
        """Delete an entity that is known to exist."""

    @abstractmethod
    def _iterate(self) -> Iterator[T]:
        """Yield all entities in the order they were added."""

    def add(self, entity: T) -> T:
        if self.exists(entity.id):
            raise ConflictError("{} already stored".format(entity.id))
        self._store(entity)
        return entity

    def get(self, entity_id: str) -> T:
        entity = self._load(entity_id)
        if entity is None:
            raise NotFoundError(self.model_class.__name__.lower(), entity_id)
        return entity

    def update(self, entity: T) -> T:
        self.get(entity.id)
        self._store(entity)
        return entity

    def delete(self, entity_id: str) -> None:
        self.get(entity_id)
        self._remove(entity_id)

    def exists(self, entity_id: str) -> bool:
        return self._load(entity_id) is not None

    def all(self, limit: Optional[int] = None, offset: int = 0) -> List[T]:
        items = list(self._iterate())[offset:]
        return items if limit is None else items[:limit]

    def filter(self, predicate: Callable[[T], bool]) -> List[T]:
        return [entity for entity in self._iterate() if predicate(entity)]

    def count(self) -> int:
        return sum(1 for _ in self._iterate())


class ShipmentRepository(Repository[Shipment]):
    """Shipment look-ups that work on every back end."""
    model_class = Shipment

    def by_tracking_number(self, tracking_number: str) -> Shipment:
        matches = self.filter(lambda item: item.tracking_number == tracking_number)
        if not matches:
            raise NotFoundError("shipment", tracking_number)
        return matches[0]

    def by_status(self, *statuses: ShipmentStatus) -> List[Shipment]:
        return self.filter(lambda item: item.status in statuses)


class TariffRepository(Repository[Tariff]):
    """Tariff look-ups that work on every back end."""
    model_class = Tariff

    def for_zone(self, zone: str, service_level: str) -> Tariff:
        matches = self.filter(
            lambda item: item.active and (item.zone, item.service_level) == (zone, service_level)
        )
        if not matches:
            raise NotFoundError("tariff", "{}/{}".format(zone, service_level))
        return matches[0]
