"""Resolution of page links and checks of local anchors."""

import re
from typing import List

from quillpad.nodes import Document, Heading, Link, Node, NodeTransformer, PageLink, Text
from quillpad.transforms.base import TRANSFORMS, Transform, TransformContext
from quillpad.util.text import suggest

_EXTERNAL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|mailto:", re.IGNORECASE)


class _LinkResolver(NodeTransformer):
    """Replaces page links by links, or by their text if there is no such page."""
    def __init__(self, context: TransformContext, anchors: List[str]) -> None:
        self.context = context
        self.anchors = anchors

    def visit_page_link(self, node: PageLink) -> List[Node]:
        children = node.children or [Text(value=node.target)]
        resolver = self.context.resolver
        url = resolver.resolve_page(node.target) if resolver else None
        if url is None:
            names = resolver.page_names() if resolver else []
            self.context.sink.warning("Q601", f"no page called {node.target!r}", node.span,
                                      hint=suggest(node.target, names))
            return children
        return [Link(children, node.span, target=url)]

    def visit_link(self, node: Link) -> Node:
        node.external = bool(_EXTERNAL.match(node.target))
        if node.target.startswith("#") and node.target[1:] not in self.anchors:
            self.context.sink.warning("Q602", f"no anchor {node.target!r} in this document",
                                      node.span, hint=suggest(node.target[1:], self.anchors))
        return node


@TRANSFORMS.register("links")
class LinkTransform(Transform):
    """Resolves page links and marks external ones."""
    priority = 400

    def apply(self, document: Document, context: TransformContext) -> None:
        anchors = [heading.anchor for heading in document.find_all(Heading) if heading.anchor]
        _LinkResolver(context, anchors).visit(document)
