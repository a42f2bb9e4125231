"""Store with one CSV file per gauge."""

import csv
import json
from typing import List

from tidewatch.errors import StorageError, TidewatchError
from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Reading
from tidewatch.model.series import Series
from tidewatch.storage.base import STORES, DirectoryStore

FIELDS = ["time", "value", "quality"]
GAUGE_PREFIX = "# gauge: "


@STORES.register("csv")
class CsvStore(DirectoryStore):
    """CSV files that start with a comment line describing the gauge."""

    suffix = ".csv"

    def save(self, series: Series) -> None:
        path = self.file_for(series.gauge.code)
        with path.open("w", encoding="utf-8", newline="") as handle:
            handle.write(GAUGE_PREFIX + json.dumps(series.gauge.to_dict()) + "\n")
            writer = csv.DictWriter(handle, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(reading.to_dict() for reading in series)

    def load(self, code: str) -> Series:
        path = self.file_for(code, must_exist=True)
        with path.open(encoding="utf-8", newline="") as handle:
            first = handle.readline()
            if not first.startswith(GAUGE_PREFIX):
                raise StorageError(f"{path}: no gauge line")
            gauge = Gauge.from_dict(json.loads(first[len(GAUGE_PREFIX):]))
            return Series(gauge, self._read_rows(csv.DictReader(handle), str(path)))

    @staticmethod
    def _read_rows(rows: "csv.DictReader[str]", name: str) -> List[Reading]:
        readings = []
        for number, row in enumerate(rows, start=3):
            try:
                readings.append(Reading.from_dict(row))
            except TidewatchError as error:
                raise StorageError(f"{name}:{number}: {error}") from error
        return readings
