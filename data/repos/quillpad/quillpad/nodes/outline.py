"""The heading structure of a document."""

from dataclasses import dataclass, field
from typing import List, Optional

from quillpad.nodes.types import Document, Heading
from quillpad.util.text import normalize_space


@dataclass
class OutlineEntry:
    """A heading and the headings below it."""
    title: str
    level: int
    anchor: Optional[str] = None
    number: Optional[str] = None
    children: List["OutlineEntry"] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.number} {self.title}" if self.number else self.title

    @classmethod
    def from_heading(cls, heading: Heading) -> "OutlineEntry":
        title = normalize_space(heading.text_content())
        return cls(title, heading.level, heading.anchor, heading.number)


def build_outline(document: Document, max_level: int = 6) -> List[OutlineEntry]:
    """Return the nested headings of ``document`` down to ``max_level``."""
    roots: List[OutlineEntry] = []
    stack: List[OutlineEntry] = []
    for heading in document.find_all(Heading):
        if heading.level > max_level:
            continue
        entry = OutlineEntry.from_heading(heading)
        while stack and stack[-1].level >= entry.level:
            stack.pop()
        (stack[-1].children if stack else roots).append(entry)
        stack.append(entry)
    return roots
