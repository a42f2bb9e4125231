"""Table of contents."""

from typing import List

from quillpad.nodes import (
    BulletList, Document, Link, ListItem, Node, NodeTransformer, OutlineEntry, Paragraph, Text,
    TocPlaceholder, build_outline,
)
from quillpad.transforms.base import TRANSFORMS, Transform, TransformContext


def toc_list(entries: List[OutlineEntry]) -> BulletList:
    """Return nested bullet lists with a link for each outline entry."""
    toc = BulletList()
    for entry in entries:
        link = Link([Text(value=entry.label)], target=f"#{entry.anchor}")
        item = ListItem([Paragraph([link])])
        if entry.children:
            item.append(toc_list(entry.children))
        toc.append(item)
    return toc


class _PlaceholderFiller(NodeTransformer):
    def __init__(self, document: Document, context: TransformContext) -> None:
        self.document = document
        self.context = context

    def visit_toc_placeholder(self, node: TocPlaceholder) -> List[Node]:
        depth = node.depth or self.context.options.toc_depth
        entries = build_outline(self.document, max_level=depth)
        if not entries:
            self.context.sink.warning("Q701", "table of contents is empty", node.span)
            return []
        return [toc_list(entries)]


@TRANSFORMS.register("toc")
class TocTransform(Transform):
    """Fills in the places marked by the ``::toc`` directive."""
    priority = 600  # needs anchors and numbers

    def apply(self, document: Document, context: TransformContext) -> None:
        _PlaceholderFiller(document, context).visit(document)
