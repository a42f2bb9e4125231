"""Description of a measuring station."""

from dataclasses import dataclass
from typing import Any, Dict, Mapping

from tidewatch.units import get_unit
from tidewatch.validation import require_code, require_finite, require_keys


@dataclass(frozen=True)
class Gauge:
    """A gauge with its code, its unit and the datum of its readings."""

    code: str
    name: str = ""
    unit: str = "m"
    datum: float = 0.0

    def __post_init__(self) -> None:
        require_code("code", self.code)
        get_unit(self.unit)
        require_finite("datum", self.datum)

    @property
    def label(self) -> str:
        """The name with the code, or the code alone where there is no name."""
        return f"{self.name} ({self.code})" if self.name else self.code

    def to_dict(self) -> Dict[str, Any]:
        """Return a JSON-compatible mapping."""
        return {"code": self.code, "name": self.name, "unit": self.unit,
                "datum": self.datum}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Gauge":
        """Build a gauge from a mapping as written by :meth:`to_dict`."""
        require_keys(data, ["code"], ["name", "unit", "datum"])
        return cls(**data)
