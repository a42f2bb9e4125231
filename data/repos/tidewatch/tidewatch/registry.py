"""Named registries, the base for filters, rules, stores and renderers."""

from typing import Any, Callable, Dict, Generic, List, Mapping, Type, TypeVar

from tidewatch.errors import RegistryError, ValidationError
from tidewatch.validation import require_keys

T = TypeVar("T")


class Registry(Generic[T]):
    """Map short names to classes of one family."""

    def __init__(self, family: str) -> None:
        self.family = family
        self._classes: Dict[str, Type[T]] = {}

    def register(self, name: str) -> Callable[[Type[T]], Type[T]]:
        """Return a class decorator that files the class under ``name``."""
        def decorator(cls: Type[T]) -> Type[T]:
            self.add(name, cls)
            return cls
        return decorator

    def add(self, name: str, cls: Type[T]) -> None:
        """Register ``cls`` and set its ``kind`` attribute to ``name``."""
        if name in self._classes:
            raise RegistryError(f"{self.family} {name!r} is already registered")
        cls.kind = name  # type: ignore[attr-defined]
        self._classes[name] = cls

    def get(self, name: str) -> Type[T]:
        """Return the class filed under ``name``."""
        try:
            return self._classes[name]
        except KeyError:
            known = ", ".join(self.names()) or "none"
            raise RegistryError(f"unknown {self.family} {name!r} (known: {known})") from None

    def names(self) -> List[str]:
        """Return all registered names in alphabetical order."""
        return sorted(self._classes)

    def create(self, name: str, **params: Any) -> T:
        """Instantiate the class filed under ``name``."""
        cls = self.get(name)
        try:
            return cls(**params)
        except TypeError as error:
            raise ValidationError(name, str(error)) from error

    def from_dict(self, data: Mapping[str, Any]) -> T:
        """Instantiate from a mapping with the key ``kind`` next to the parameters."""
        require_keys(data, ["kind"])
        params = {key: value for key, value in data.items() if key != "kind"}
        return self.create(data["kind"], **params)


class Configurable:
    """Mixin for registered classes that can be written back to a mapping."""

    kind = "abstract"

    def params(self) -> Dict[str, Any]:
        """Return the constructor parameters in JSON-compatible form."""
        return {}

    def to_dict(self) -> Dict[str, Any]:
        """Return a mapping that the registry's ``from_dict`` reads back."""
        return {"kind": self.kind, **self.params()}
