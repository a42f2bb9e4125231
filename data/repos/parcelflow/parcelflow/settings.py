"""Application settings, read from the environment or a mapping."""
import os
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Dict, Mapping, Optional

from parcelflow.exceptions import ConfigurationError

ENV_PREFIX = "PARCELFLOW_"
BACKENDS = ("memory", "json", "sqlite")


@dataclass
class Settings:
    """Plain settings object; call :meth:`check` before using it."""
    backend: str = "memory"
    data_dir: str = "."
    currency: str = "EUR"
    fuel_surcharge_percent: Decimal = Decimal("6.5")
    volumetric_divisor: int = 5000
    stale_after_hours: int = 72
    notification_retries: int = 3
    default_carrier: str = "postal"

    @classmethod
    def from_env(cls, environ: Optional[Mapping[str, str]] = None) -> "Settings":
        """Build settings from ``PARCELFLOW_*`` variables."""
        environ = os.environ if environ is None else environ
        keys = {field.name: ENV_PREFIX + field.name.upper() for field in fields(cls)}
        return cls.from_mapping({n: environ[key] for n, key in keys.items() if key in environ})

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Settings":
        known = {field.name: type(field.default) for field in fields(cls)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigurationError("Unknown settings: " + ", ".join(unknown))
        converted: Dict[str, Any] = {}
        for name, raw in values.items():
            try:
                converted[name] = known[name](str(raw))
            except (ValueError, ArithmeticError) as exc:
                raise ConfigurationError("Bad value for '{}': {!r}".format(name, raw)) from exc
        settings = cls(**converted)
        settings.check()
        return settings

    def check(self) -> None:
        """Raise :class:`ConfigurationError` when a value makes no sense."""
        if self.backend not in BACKENDS:
            raise ConfigurationError("Unknown backend '{}'".format(self.backend))
        if self.volumetric_divisor <= 0:
            raise ConfigurationError("volumetric_divisor must be positive")
        if self.fuel_surcharge_percent < 0 or self.notification_retries < 0:
            raise ConfigurationError("surcharges and retries must not be negative")

    def path_for(self, filename: str) -> str:
        return os.path.join(self.data_dir, filename)
