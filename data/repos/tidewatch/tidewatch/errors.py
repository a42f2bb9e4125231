"""Exception hierarchy of the package."""


class TidewatchError(Exception):
    """Base class of all errors raised on purpose by tidewatch."""


class ValidationError(TidewatchError, ValueError):
    """A parameter or a field has an unusable value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnitError(TidewatchError):
    """An unknown unit, or a conversion between different quantities."""


class SeriesError(TidewatchError):
    """A series operation that makes no sense for the given data."""


class CalibrationError(TidewatchError):
    """A calibration cannot be applied or inverted."""


class PredictionError(TidewatchError):
    """A tide model cannot be fitted or evaluated."""


class ConfigError(TidewatchError):
    """The configuration is incomplete or malformed."""


class StorageError(TidewatchError):
    """A store cannot be read or written."""


class NotFoundError(StorageError, KeyError):
    """The store holds nothing under the given gauge code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"no series stored for gauge {self.code!r}"


class RegistryError(TidewatchError, LookupError):
    """A name is unknown to a registry, or registered twice."""
