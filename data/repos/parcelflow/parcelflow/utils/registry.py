"""A small name-to-class registry used for carriers, label formats and channels."""
from typing import Any, Callable, Dict, Generic, List, Type, TypeVar

from parcelflow.exceptions import ConfigurationError, NotFoundError

T = TypeVar("T")


class Registry(Generic[T]):
    """Map names to classes; ``kind`` is only used in error messages."""
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: Dict[str, Type[T]] = {}

    def register(self, name: str) -> Callable[[Type[T]], Type[T]]:
        """Class decorator that stores the class under ``name``."""

        def decorator(cls: Type[T]) -> Type[T]:
            if name in self._classes:
                raise ConfigurationError("{} '{}' registered twice".format(self.kind, name))
            self._classes[name] = cls
            return cls

        return decorator

    def get(self, name: str) -> Type[T]:
        try:
            return self._classes[name]
        except KeyError:
            raise NotFoundError(self.kind, name) from None

    def create(self, name: str, *args: Any, **kwargs: Any) -> T:
        return self.get(name)(*args, **kwargs)

    def names(self) -> List[str]:
        return sorted(self._classes)
