"""Storage back ends."""

from tidewatch.storage.base import STORES, SeriesStore, open_store
from tidewatch.storage.csv_store import CsvStore
from tidewatch.storage.jsonl_store import JsonLinesStore
from tidewatch.storage.sqlite_store import SqliteStore

__all__ = ["STORES", "CsvStore", "JsonLinesStore", "SeriesStore", "SqliteStore", "open_store"]
