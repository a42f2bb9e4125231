"""Helpers without knowledge of documents."""

from quillpad.util.cache import DiskCache, MemoryCache, fingerprint
from quillpad.util.registry import Registry
