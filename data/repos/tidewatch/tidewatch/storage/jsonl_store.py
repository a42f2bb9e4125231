"""Store with one JSON lines file per gauge."""

import json

from tidewatch.errors import StorageError, TidewatchError
from tidewatch.model.gauge import Gauge
from tidewatch.model.reading import Reading
from tidewatch.model.series import Series
from tidewatch.storage.base import STORES, DirectoryStore


@STORES.register("jsonl")
class JsonLinesStore(DirectoryStore):
    """The first line holds the gauge, each further line one reading."""

    suffix = ".jsonl"

    def save(self, series: Series) -> None:
        path = self.file_for(series.gauge.code)
        with path.open("w", encoding="utf-8") as handle:
            handle.write(json.dumps(series.gauge.to_dict()) + "\n")
            for reading in series:
                handle.write(json.dumps(reading.to_dict()) + "\n")

    def load(self, code: str) -> Series:
        path = self.file_for(code, must_exist=True)
        gauge, readings = None, []
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, start=1):
                try:
                    data = json.loads(line)
                    if gauge is None:
                        gauge = Gauge.from_dict(data)
                    else:
                        readings.append(Reading.from_dict(data))
                except (json.JSONDecodeError, TidewatchError) as error:
                    raise StorageError(f"{path}:{number}: {error}") from error
        if gauge is None:
            raise StorageError(f"{path}: empty file")
        return Series(gauge, readings)
