"""Configuration: gauges with their calibration, filters and rules."""

import importlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Union

from tidewatch.alarms import RULES, AlarmEngine, Rule
from tidewatch.calibration import CALIBRATIONS, Calibration
from tidewatch.errors import ConfigError, TidewatchError
from tidewatch.filters import Pipeline
from tidewatch.model import Gauge, Series
from tidewatch.validation import require_keys


@dataclass
class Station:
    """A gauge and how its data is treated."""

    gauge: Gauge
    calibration: Optional[Calibration] = None
    filters: Pipeline = field(default_factory=Pipeline)
    rules: List[Rule] = field(default_factory=list)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Station":
        """Build a station from one entry of the configuration file."""
        require_keys(data, ["gauge"], ["calibration", "filters", "rules"])
        calibration = data.get("calibration")
        return cls(
            gauge=Gauge.from_dict(data["gauge"]),
            calibration=CALIBRATIONS.from_dict(calibration) if calibration else None,
            filters=Pipeline(data.get("filters", [])),
            rules=[RULES.from_dict(item) for item in data.get("rules", [])],
        )

    def process(self, series: Series) -> Series:
        """Calibrate and filter raw data."""
        if self.calibration is not None:
            series = self.calibration.apply_series(series)
        return self.filters.apply(series)


class Config:
    """All stations by gauge code."""

    def __init__(self, stations: Mapping[str, Station]) -> None:
        self.stations: Dict[str, Station] = dict(stations)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Config":
        """Build the configuration, importing its plugin modules first."""
        try:
            require_keys(data, ["stations"], ["plugins"])
            load_plugins(data.get("plugins", []))
            stations = [Station.from_dict(item) for item in data["stations"]]
        except TidewatchError as error:
            raise ConfigError(f"bad configuration: {error}") from error
        return cls({station.gauge.code: station for station in stations})

    @classmethod
    def load(cls, path: Union[str, Path]) -> "Config":
        """Read a configuration from a JSON file."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from error
        return cls.from_dict(data)

    def process(self, series: Series) -> Series:
        """Process a series as its station says; unknown gauges pass unchanged."""
        station = self.stations.get(series.gauge.code)
        return station.process(series) if station else series

    def engine(self) -> AlarmEngine:
        """Return an alarm engine with the rules of all stations."""
        engine = AlarmEngine()
        for code, station in self.stations.items():
            for rule in station.rules:
                engine.add_rule(rule, code)
        return engine


def load_plugins(names: List[str]) -> None:
    """Import modules that register further filters, rules, stores or renderers."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ConfigError(f"cannot import plugin {name!r}: {error}") from error
