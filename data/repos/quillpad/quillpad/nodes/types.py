"""Node types: first the blocks, then what they contain."""

from dataclasses import field
from typing import Any, Dict, Optional

from quillpad.nodes.base import Node, register_node
from quillpad.util.text import normalize_space


@register_node
class Document(Node):
    """The root of a tree, with the metadata of the file header."""
    kind = "document"
    separator = "\n\n"
    metadata: Dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> Optional[str]:
        """The title from the metadata, or else the first heading."""
        if "title" in self.metadata:
            return str(self.metadata["title"])
        for heading in self.find_all(Heading):
            return normalize_space(heading.text_content())
        return None


@register_node
class Heading(Node):
    """A section heading; ``anchor`` and ``number`` are filled by transforms."""
    kind = "heading"
    level: int = 1
    anchor: Optional[str] = None
    number: Optional[str] = None


@register_node
class Paragraph(Node):
    """A run of inline nodes."""
    kind = "paragraph"


@register_node
class CodeBlock(Node):
    """Literal text with an optional language."""
    kind = "code_block"
    value: str = ""
    language: Optional[str] = None

    def text_content(self) -> str:
        return self.value


@register_node
class BulletList(Node):
    """A list without numbers."""
    kind = "bullet_list"
    separator = "\n"


@register_node
class OrderedList(Node):
    """A numbered list that begins at ``start``."""
    kind = "ordered_list"
    separator = "\n"
    start: int = 1


@register_node
class ListItem(Node):
    """A paragraph and any lists nested below it."""
    kind = "list_item"
    separator = "\n"


@register_node
class FootnoteDefinition(Node):
    """The text of a footnote."""
    kind = "footnote_definition"
    label: str = ""
    number: Optional[int] = None


@register_node
class FootnoteSection(Node):
    """All used footnotes, at the end of a document."""
    kind = "footnote_section"


@register_node
class TocPlaceholder(Node):
    """The place where a table of contents goes."""
    kind = "toc_placeholder"
    depth: Optional[int] = None


@register_node
class Text(Node):
    """Plain text."""
    kind = "text"
    value: str = ""

    def text_content(self) -> str:
        return self.value


@register_node
class Code(Text):
    """Literal text within a paragraph."""
    kind = "code"


@register_node
class Strong(Node):
    """Strongly emphasized content."""
    kind = "strong"


@register_node
class Emphasis(Node):
    """Emphasized content."""
    kind = "emphasis"


@register_node
class Link(Node):
    """A link to a URL or to an anchor."""
    kind = "link"
    target: str = ""
    title: Optional[str] = None
    external: bool = False


@register_node
class PageLink(Node):
    """A link to another page by name, resolved by a transform."""
    kind = "page_link"
    target: str = ""


@register_node
class FootnoteRef(Node):
    """A mark that refers to a footnote definition."""
    kind = "footnote_ref"
    label: str = ""
    number: Optional[int] = None
