"""Base classes and registry of stores."""

from abc import ABC, abstractmethod
from datetime import datetime
from pathlib import Path
from typing import List, Optional, Union

from tidewatch.errors import NotFoundError, StorageError
from tidewatch.model.series import Series
from tidewatch.registry import Registry
from tidewatch.validation import require_code


class SeriesStore(ABC):
    """Keeps one series per gauge code."""

    kind = "abstract"

    def __init__(self, path: Union[str, Path]) -> None:
        self.path = Path(path)

    @abstractmethod
    def save(self, series: Series) -> None:
        """Write a series, replacing what was stored for its gauge."""

    @abstractmethod
    def load(self, code: str) -> Series:
        """Read the whole series of a gauge."""

    @abstractmethod
    def codes(self) -> List[str]:
        """Return the codes of all stored gauges in alphabetical order."""

    def append(self, series: Series) -> Series:
        """Merge new readings into the stored series and return the result."""
        if series.gauge.code in self.codes():
            series = self.load(series.gauge.code).merge(series)
        self.save(series)
        return series

    def load_between(self, code: str, start: Optional[datetime] = None,
                     end: Optional[datetime] = None) -> Series:
        """Read the part of a series from ``start`` to ``end``."""
        return self.load(code).between(start, end)

    def close(self) -> None:
        """Release files and connections."""

    def __enter__(self) -> "SeriesStore":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class DirectoryStore(SeriesStore):
    """Base class of stores with one file per gauge in a directory."""

    suffix = ""

    def __init__(self, path: Union[str, Path]) -> None:
        super().__init__(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def codes(self) -> List[str]:
        return sorted(p.name[:-len(self.suffix)] for p in self.path.glob(f"*{self.suffix}"))

    def file_for(self, code: str, must_exist: bool = False) -> Path:
        """Return the path of the file for a gauge."""
        path = self.path / (require_code("code", code) + self.suffix)
        if must_exist and not path.exists():
            raise NotFoundError(code)
        return path


STORES: Registry[SeriesStore] = Registry("store")


def open_store(location: str) -> SeriesStore:
    """Open a store given as ``kind:path``, for example ``sqlite:levels.db``."""
    kind, separator, path = location.partition(":")
    if not separator or not path:
        raise StorageError(f"not of the form kind:path: {location!r}")
    return STORES.create(kind, path=path)
