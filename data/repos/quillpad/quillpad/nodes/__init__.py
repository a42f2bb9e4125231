"""The document tree."""

from quillpad.nodes.base import Node, node_from_dict
from quillpad.nodes.outline import OutlineEntry, build_outline
from quillpad.nodes.types import (
    BulletList, Code, CodeBlock, Document, Emphasis, FootnoteDefinition, FootnoteRef,
    FootnoteSection, Heading, Link, ListItem, OrderedList, PageLink, Paragraph, Strong, Text,
    TocPlaceholder,
)
from quillpad.nodes.visitor import NodeTransformer, NodeVisitor
