import tempfile
import unittest
from pathlib import Path

from tests.helpers import minutes, series_of
from tidewatch.errors import NotFoundError, StorageError
from tidewatch.model import Quality
from tidewatch.storage import CsvStore, JsonLinesStore, open_store


class StoreMixin:
    """Tests that every store has to pass."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = self.make()
        self.addCleanup(self.store.close)

    def test_round_trip(self):
        series = series_of(1.5, 2.25).flag([1], Quality.SUSPECT)
        self.store.save(series)
        self.assertEqual(self.store.load("KIEL"), series)
        self.assertEqual(self.store.codes(), ["KIEL"])

    def test_append_and_load_between(self):
        self.store.append(series_of(1, 2))
        self.store.append(series_of(7, 8, 9))
        self.assertEqual(self.store.load_between("KIEL", minutes(10)).values, [8, 9])

    def test_missing_gauge(self):
        with self.assertRaises(NotFoundError):
            self.store.load("HUSUM")


class CsvStoreTest(StoreMixin, unittest.TestCase):
    def make(self):
        return CsvStore(self.folder)

    def test_bad_row_is_located(self):
        self.store.save(series_of(1))
        with (self.folder / "KIEL.csv").open("a") as handle:
            handle.write("yesterday,2,good\n")
        with self.assertRaisesRegex(StorageError, "KIEL.csv:4: timestamp"):
            self.store.load("KIEL")


class JsonLinesStoreTest(StoreMixin, unittest.TestCase):
    def make(self):
        return JsonLinesStore(self.folder)

    def test_empty_file(self):
        (self.folder / "KIEL.jsonl").touch()
        with self.assertRaisesRegex(StorageError, "empty file"):
            self.store.load("KIEL")


class SqliteStoreTest(StoreMixin, unittest.TestCase):
    def make(self):
        return open_store(f"sqlite:{self.folder / 'levels.db'}")
