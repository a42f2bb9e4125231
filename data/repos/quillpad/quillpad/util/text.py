"""String helpers used across the package."""

import difflib
import re
import textwrap
import unicodedata
from typing import Dict, Iterable, List, Optional

_SLUG_DROP = re.compile(r"[^a-z0-9]+")
_SPACE = re.compile(r"\s+")
_HTML_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def slugify(text: str, fallback: str = "section") -> str:
    """Return a lower-case ASCII identifier made from ``text``."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return _SLUG_DROP.sub("-", folded.lower()).strip("-") or fallback


def normalize_space(text: str) -> str:
    """Collapse every run of whitespace into one space."""
    return _SPACE.sub(" ", text).strip()


def truncate(text: str, length: int, ellipsis: str = "...") -> str:
    """Shorten ``text`` to at most ``length`` characters, at a word if possible."""
    if len(text) <= length:
        return text
    head = text[: max(0, length - len(ellipsis))]
    if " " in head:
        head = head[: head.rindex(" ")]
    return head.rstrip() + ellipsis


def escape_html(text: str) -> str:
    """Escape the characters that are special in HTML text and attributes."""
    return "".join(_HTML_ESCAPES.get(char, char) for char in text)


def wrap_text(text: str, width: int, first: str = "", rest: Optional[str] = None) -> str:
    """Wrap ``text`` with ``first`` before line one and ``rest`` before others."""
    return textwrap.fill(
        normalize_space(text), width=width, initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False, break_on_hyphens=False,
    )


def indent_block(text: str, prefix: str) -> str:
    """Put ``prefix`` before each non-empty line."""
    lines = text.split("\n")
    return "\n".join(prefix + line if line.strip() else prefix.rstrip() for line in lines)


def suggest(name: str, known: Iterable[str]) -> Optional[str]:
    """Return a "did you mean" hint for a misspelt name, or None."""
    matches: List[str] = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {matches[0]!r}?" if matches else None


class SlugAllocator:
    """Hands out slugs that are unique within one document."""
    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._counts: Dict[str, int] = {slug: 1 for slug in reserved}

    def allocate(self, text: str) -> str:
        base = slugify(text)
        slug = base
        while slug in self._counts:
            self._counts[base] = self._counts.get(base, 1) + 1
            slug = f"{base}-{self._counts[base]}"
        self._counts[slug] = 1
        return slug
