"""Typed configuration sections and the files they are loaded from."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Type, TypeVar

from quillpad.errors import ConfigError
from quillpad.util.text import suggest

S = TypeVar("S", bound="ConfigSection")


class ConfigSection:
    """Mixin for dataclasses that are read from plain mappings."""
    @classmethod
    def from_dict(cls: Type[S], data: Mapping[str, Any]) -> S:
        """Build the section, rejecting unknown keys and bad values."""
        section = cls()
        known = [item.name for item in dataclasses.fields(cls)]  # type: ignore[arg-type]
        for name, value in data.items():
            if name not in known:
                raise ConfigError(f"unknown option {name!r}", hint=suggest(name, known))
            default = getattr(section, name)
            if isinstance(default, ConfigSection):
                value = type(default).from_dict(value)
            elif not isinstance(value, type(default)):
                expected = type(default).__name__
                raise ConfigError(f"option {name!r} must be of type {expected}, got {value!r}")
            setattr(section, name, value)
        section.validate()
        return section

    def to_dict(self) -> Dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    def validate(self) -> None:
        """Check values that a type cannot express; subclasses override this."""


@dataclass
class RenderOptions(ConfigSection):
    """Options that all renderers understand."""
    heading_offset: int = 0
    width: int = 72
    indent: int = 2

    def validate(self) -> None:
        if not 20 <= self.width <= 400:
            raise ConfigError(f"width must be between 20 and 400, got {self.width}")


@dataclass
class TransformOptions(ConfigSection):
    """Options of the document transforms."""
    disabled: List[str] = field(default_factory=list)
    toc_depth: int = 3
    number_sections: bool = False

    def validate(self) -> None:
        if not 1 <= self.toc_depth <= 6:
            raise ConfigError(f"toc_depth must be between 1 and 6, got {self.toc_depth}")


@dataclass
class Config(ConfigSection):
    """The configuration of a site."""
    title: str = "Untitled"
    source: str = "pages"
    assets: str = "assets"
    output: str = "public"
    cache: str = ""
    scorer: str = "bm25"
    plugins: List[str] = field(default_factory=list)
    render: RenderOptions = field(default_factory=RenderOptions)
    transforms: TransformOptions = field(default_factory=TransformOptions)

    def validate(self) -> None:
        if self.source == self.output:
            raise ConfigError("output must differ from source")


def load_config(path: Path) -> Config:
    """Read a JSON configuration file."""
    if not path.is_file():
        raise ConfigError(f"no configuration file at {path}")
    try:
        return Config.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path.name}: {error.msg} on line {error.lineno}") from error
