"""Store in a single SQLite database."""

import json
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import List, Optional, Union

from tidewatch.errors import NotFoundError, StorageError
from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Quality, Reading
from tidewatch.model.series import Series
from tidewatch.storage.base import STORES, SeriesStore
from tidewatch.timeutil import EPOCH, ensure_utc

SCHEMA = """
CREATE TABLE IF NOT EXISTS gauge (code TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reading (
    code TEXT NOT NULL REFERENCES gauge (code),
    time REAL NOT NULL,
    value REAL NOT NULL,
    quality TEXT NOT NULL,
    PRIMARY KEY (code, time)
);
"""


@STORES.register("sqlite")
class SqliteStore(SeriesStore):
    """Gauges and readings in two tables; time is kept as seconds since the epoch."""

    def __init__(self, path: Union[str, Path]) -> None:
        super().__init__(path)
        try:
            self._connection = sqlite3.connect(str(path))
            self._connection.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise StorageError(f"cannot open {path}: {error}") from error

    def save(self, series: Series) -> None:
        code = series.gauge.code
        rows = [(code, r.time.timestamp(), r.value, r.quality.value) for r in series]
        with self._connection:
            self._connection.execute("DELETE FROM reading WHERE code = ?", (code,))
            self._connection.execute("INSERT OR REPLACE INTO gauge VALUES (?, ?)",
                                     (code, json.dumps(series.gauge.to_dict())))
            self._connection.executemany("INSERT INTO reading VALUES (?, ?, ?, ?)", rows)

    def load(self, code: str) -> Series:
        return self.load_between(code)

    def load_between(self, code: str, start: Optional[datetime] = None,
                     end: Optional[datetime] = None) -> Series:
        gauge = self._load_gauge(code)
        query = "SELECT time, value, quality FROM reading WHERE code = ?"
        arguments: List[object] = [code]
        if start is not None:
            query += " AND time >= ?"
            arguments.append(ensure_utc(start).timestamp())
        if end is not None:
            query += " AND time <= ?"
            arguments.append(ensure_utc(end).timestamp())
        rows = self._connection.execute(query, arguments)
        return Series(gauge, (
            Reading(datetime.fromtimestamp(seconds, EPOCH.tzinfo), value, Quality.parse(flag))
            for seconds, value, flag in rows))

    def _load_gauge(self, code: str) -> Gauge:
        row = self._connection.execute(
            "SELECT data FROM gauge WHERE code = ?", (code,)).fetchone()
        if row is None:
            raise NotFoundError(code)
        return Gauge.from_dict(json.loads(row[0]))

    def codes(self) -> List[str]:
        rows = self._connection.execute("SELECT code FROM gauge ORDER BY code")
        return [code for (code,) in rows]

    def close(self) -> None:
        self._connection.close()
