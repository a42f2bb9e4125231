"""Anchors and numbers of headings."""

from typing import List

from quillpad.nodes import Document, Heading
from quillpad.transforms.base import TRANSFORMS, Transform, TransformContext
from quillpad.util.text import SlugAllocator


@TRANSFORMS.register("anchors")
class AnchorTransform(Transform):
    """Gives each heading a unique anchor."""
    priority = 100

    def apply(self, document: Document, context: TransformContext) -> None:
        headings = document.find_all(Heading)
        slugs = SlugAllocator(heading.anchor for heading in headings if heading.anchor)
        for heading in headings:
            if heading.anchor is None:
                heading.anchor = slugs.allocate(heading.text_content())


@TRANSFORMS.register("numbering")
class NumberingTransform(Transform):
    """Numbers the sections if the options ask for it."""
    priority = 200

    def apply(self, document: Document, context: TransformContext) -> None:
        if not context.options.number_sections:
            return
        headings = document.find_all(Heading)
        top = min((heading.level for heading in headings), default=1)
        counters: List[int] = []
        for heading in headings:
            depth = heading.level - top + 1
            counters = (counters + [0] * depth)[:depth]
            counters[-1] += 1
            heading.number = ".".join(str(max(1, count)) for count in counters)
