"""In-memory and on-disk caches keyed by content fingerprints."""

import hashlib
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any, Callable, Optional


def fingerprint(*parts: Any) -> str:
    """Return a stable hexadecimal digest of JSON-compatible values."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True, default=str).encode("utf-8"))
        digest.update(b"\0")
    return digest.hexdigest()[:32]


class Cache:
    """Base class: subclasses load and store, this class counts and computes."""
    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0

    def get_or_compute(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the cached value, computing and storing it when absent."""
        value = self.load(key)
        if value is not None:
            self.hits += 1
            return value
        self.misses += 1
        value = compute()
        self.store(key, value)
        return value

    def load(self, key: str) -> Optional[Any]:
        raise NotImplementedError

    def store(self, key: str, value: Any) -> None:
        raise NotImplementedError


class MemoryCache(Cache):
    """A bounded cache that drops the least recently used entry."""
    def __init__(self, capacity: int = 256) -> None:
        super().__init__()
        self.capacity = capacity
        self._entries: "OrderedDict[str, Any]" = OrderedDict()

    def load(self, key: str) -> Optional[Any]:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def store(self, key: str, value: Any) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self.capacity:
            self._entries.popitem(last=False)


class DiskCache(Cache):
    """Stores each value as a JSON file in a directory."""
    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def load(self, key: str) -> Optional[Any]:
        try:
            return json.loads((self.root / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None  # a missing or damaged entry is just a miss

    def store(self, key: str, value: Any) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / f"{key}.json").write_text(json.dumps(value), encoding="utf-8")
