"""Repositories backed by SQLite: a JSON payload plus a few searchable columns."""
import json
import sqlite3
from typing import Any, Iterator, List, Optional, Tuple

from parcelflow.exceptions import NotFoundError
from parcelflow.models.shipment import Shipment, ShipmentStatus
from parcelflow.models.tariff import Tariff
from parcelflow.repositories.base import Repository, ShipmentRepository, T, TariffRepository


class SqliteRepository(Repository[T]):
    """Generic table access; subclasses name the table and its searchable columns."""
    table: str
    columns: Tuple[str, ...] = ()

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        extra = "".join(", {} TEXT".format(name) for name in self.columns)
        with self.connection:
            sql = "CREATE TABLE IF NOT EXISTS {} (id TEXT PRIMARY KEY, payload TEXT{})"
            self.connection.execute(sql.format(self.table, extra))

    def _select(self, where: str = "", params: Tuple[Any, ...] = ()) -> List[T]:
        sql = "SELECT payload FROM {} {} ORDER BY rowid".format(self.table, where)
        rows = self.connection.execute(sql, params)
        return [self.model_class.from_dict(json.loads(row[0])) for row in rows]

    def _load(self, entity_id: str) -> Optional[T]:
        found = self._select("WHERE id = ?", (entity_id,))
        return found[0] if found else None

    def _store(self, entity: T) -> None:
        data = entity.to_dict()
        columns = ("payload",) + self.columns
        values = [json.dumps(data)] + [data.get(name) for name in self.columns]
        sql = "INSERT INTO {} (id, {}) VALUES ({}) ON CONFLICT(id) DO UPDATE SET {}".format(
            self.table, ", ".join(columns), ", ".join("?" * (len(columns) + 1)),
            ", ".join("{0} = excluded.{0}".format(name) for name in columns),
        )
        with self.connection:
            self.connection.execute(sql, [entity.id] + values)

    def _remove(self, entity_id: str) -> None:
        with self.connection:
            self.connection.execute("DELETE FROM {} WHERE id = ?".format(self.table), (entity_id,))

    def _iterate(self) -> Iterator[T]:
        return iter(self._select())


class SqliteShipmentRepository(SqliteRepository[Shipment], ShipmentRepository):
    """Shipments in SQLite; look-ups use its columns."""
    table = "shipments"
    columns = ("status", "tracking_number")

    def by_tracking_number(self, tracking_number: str) -> Shipment:
        matches = self._select("WHERE tracking_number = ?", (tracking_number,))
        if not matches:
            raise NotFoundError("shipment", tracking_number)
        return matches[0]

    def by_status(self, *statuses: ShipmentStatus) -> List[Shipment]:
        marks = ", ".join("?" * len(statuses))
        values = tuple(status.value for status in statuses)
        return self._select("WHERE status IN ({})".format(marks), values)


class SqliteTariffRepository(SqliteRepository[Tariff], TariffRepository):
    """Tariffs in SQLite."""
    table = "tariffs"
