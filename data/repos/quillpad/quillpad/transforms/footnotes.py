"""Footnotes: numbers the references and gathers the definitions."""

from typing import Dict, List

from quillpad.nodes import (
    Document, FootnoteDefinition, FootnoteRef, FootnoteSection, Node, NodeTransformer,
)
from quillpad.transforms.base import TRANSFORMS, Transform, TransformContext
from quillpad.util.text import suggest


class _DefinitionCollector(NodeTransformer):
    """Takes footnote definitions out of the tree."""
    def __init__(self, context: TransformContext) -> None:
        self.context = context
        self.definitions: Dict[str, FootnoteDefinition] = {}

    def visit_footnote_definition(self, node: FootnoteDefinition) -> None:
        if node.label in self.definitions:
            self.context.sink.error("Q501", f"footnote {node.label!r} is defined twice", node.span)
        else:
            self.definitions[node.label] = node


@TRANSFORMS.register("footnotes")
class FootnoteTransform(Transform):
    """Moves the used footnotes to a section at the end of the document."""
    priority = 300

    def apply(self, document: Document, context: TransformContext) -> None:
        collector = _DefinitionCollector(context)
        collector.visit(document)
        used: List[Node] = []
        for ref in document.find_all(FootnoteRef):
            definition = collector.definitions.get(ref.label)
            if definition is None:
                context.sink.error("Q502", f"footnote {ref.label!r} is not defined", ref.span,
                                   hint=suggest(ref.label, collector.definitions))
                continue
            if definition.number is None:
                used.append(definition)
                definition.number = len(used)
            ref.number = definition.number
        for definition in collector.definitions.values():
            if definition.number is None:
                context.sink.warning("Q503", f"footnote {definition.label!r} is never used",
                                     definition.span)
        if used:
            document.append(FootnoteSection(used))
