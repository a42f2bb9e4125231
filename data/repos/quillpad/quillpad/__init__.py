"""quillpad: a small document toolkit built on the standard library."""

from quillpad.api import convert, parse, process
from quillpad.errors import QuillpadError

__all__ = ["QuillpadError", "convert", "parse", "process"]
__version__ = "0.7.0"
