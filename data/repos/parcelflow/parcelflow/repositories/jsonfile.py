"""Repositories backed by one JSON file each."""
import json
import os
import tempfile
from typing import Any, Dict, Iterator, Optional

from parcelflow.repositories.base import Repository, ShipmentRepository, T, TariffRepository


class JsonFileRepository(Repository[T]):
    """Reads the file once and rewrites it atomically after each change."""
    def __init__(self, path: str) -> None:
        self.path = path
        self._rows: Dict[str, Dict[str, Any]] = self._read()

    def _read(self) -> Dict[str, Dict[str, Any]]:
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as handle:
            return {row["id"]: row for row in json.load(handle)}

    def _write(self) -> None:
        folder = os.path.dirname(os.path.abspath(self.path))
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(list(self._rows.values()), stream, indent=2)
        os.replace(temporary, self.path)

    def _load(self, entity_id: str) -> Optional[T]:
        row = self._rows.get(entity_id)
        return None if row is None else self.model_class.from_dict(row)

    def _store(self, entity: T) -> None:
        self._rows[entity.id] = entity.to_dict()
        self._write()

    def _remove(self, entity_id: str) -> None:
        del self._rows[entity_id]
        self._write()

    def _iterate(self) -> Iterator[T]:
        for row in list(self._rows.values()):
            yield self.model_class.from_dict(row)


class JsonShipmentRepository(JsonFileRepository, ShipmentRepository):
    """Shipments in a JSON file."""


class JsonTariffRepository(JsonFileRepository, TariffRepository):
    """Tariffs in a JSON file."""
