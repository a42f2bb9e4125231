"""Renderer base class and registry."""

import json
from typing import ClassVar, Optional, Type

from quillpad.config import RenderOptions
from quillpad.nodes import Code, Document, Heading, Node, NodeVisitor, Text
from quillpad.util import Registry

RENDERERS: Registry[Type["Renderer"]] = Registry("renderer")


class Renderer(NodeVisitor):
    """Turns a document into a string; ``visit_*`` methods return strings."""
    block_separator: ClassVar[str] = "\n"

    def __init__(self, options: Optional[RenderOptions] = None) -> None:
        self.options = options or RenderOptions()

    def render(self, document: Document) -> str:
        return self.visit(document).rstrip("\n") + "\n"

    def escape(self, text: str) -> str:
        return text

    def inline(self, node: Node) -> str:
        """Render the children of ``node`` one after the other."""
        return "".join(self.visit(child) for child in node.children)

    def blocks(self, node: Node) -> str:
        """Render the children of ``node``, separated as blocks."""
        parts = [self.visit(child) for child in node.children]
        return self.block_separator.join(part for part in parts if part)

    def heading_level(self, node: Heading) -> int:
        return min(6, node.level + self.options.heading_offset)

    def generic_visit(self, node: Node) -> str:
        return self.inline(node)

    def visit_document(self, node: Document) -> str:
        return self.blocks(node)

    def visit_text(self, node: Text) -> str:
        return self.escape(node.value)

    def visit_code(self, node: Code) -> str:
        return self.visit_text(node)


def create_renderer(name: str, options: Optional[RenderOptions] = None) -> Renderer:
    """Return a new renderer of the format ``name``."""
    return RENDERERS.create(name, options)


@RENDERERS.register("json")
class JsonRenderer(Renderer):
    """Dumps the tree in the form that ``node_from_dict`` reads."""
    def visit_document(self, node: Document) -> str:
        return json.dumps(node.to_dict(), indent=self.options.indent or None, sort_keys=True)
