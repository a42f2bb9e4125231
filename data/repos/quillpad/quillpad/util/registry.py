"""A registry of named implementations."""

from typing import Any, Callable, Dict, Generic, Iterable, List, TypeVar

from quillpad.errors import RegistryError
from quillpad.util.text import suggest

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps names and aliases to classes or functions of one sort."""
    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: Dict[str, T] = {}
        self._aliases: Dict[str, str] = {}

    def register(self, name: str, *, aliases: Iterable[str] = ()) -> Callable[[T], T]:
        """Return a decorator that stores its argument under ``name``."""

        def decorator(entry: T) -> T:
            self.add(name, entry)
            for alias in aliases:
                self._aliases[alias] = name
            return entry

        return decorator

    def add(self, name: str, entry: T) -> None:
        if name in self._entries:
            raise RegistryError(f"{self.what} {name!r} is already registered")
        self._entries[name] = entry

    def get(self, name: str) -> T:
        """Return the entry called ``name``, following aliases."""
        key = self._aliases.get(name, name)
        if key not in self._entries:
            raise RegistryError(f"unknown {self.what} {name!r}",
                                hint=suggest(name, self.names()))
        return self._entries[key]

    def create(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Look up ``name`` and call it."""
        factory: Any = self.get(name)
        return factory(*args, **kwargs)

    def names(self) -> List[str]:
        return sorted(self._entries)
