"""Plain text renderer."""

from quillpad.nodes import (
    BulletList, CodeBlock, Emphasis, FootnoteDefinition, FootnoteRef, Heading, Link, ListItem,
    OrderedList, Paragraph, Strong,
)
from quillpad.nodes import FootnoteSection, Node
from quillpad.render.base import RENDERERS, Renderer
from quillpad.util.text import indent_block, normalize_space, wrap_text


@RENDERERS.register("text", aliases=["txt", "plain"])
class TextRenderer(Renderer):
    """Renders wrapped text for terminals and e-mail."""
    block_separator = "\n\n"

    def visit_heading(self, node: Heading) -> str:
        title = normalize_space(f"{node.number or ''} {self.inline(node)}")
        underline = "=" if self.heading_level(node) == 1 else "-"
        return f"{title}\n{underline * len(title)}"

    def visit_paragraph(self, node: Paragraph) -> str:
        return wrap_text(self.inline(node), self.options.width)

    def visit_code_block(self, node: CodeBlock) -> str:
        return indent_block(node.value, "    ")

    def visit_bullet_list(self, node: BulletList) -> str:
        return "\n".join(self._item(child, "- ") for child in node.children)

    def visit_ordered_list(self, node: OrderedList) -> str:
        return "\n".join(self._item(child, f"{number}. ")
                         for number, child in enumerate(node.children, start=node.start))

    def _item(self, node: Node, marker: str) -> str:
        body = indent_block(self.visit(node), " " * len(marker))
        return marker + body[len(marker):]

    def visit_list_item(self, node: ListItem) -> str:
        return "\n".join(self.visit(child) for child in node.children)

    def visit_footnote_section(self, node: FootnoteSection) -> str:
        return "Notes\n-----\n" + "\n".join(self.visit(child) for child in node.children)

    def visit_footnote_definition(self, node: FootnoteDefinition) -> str:
        text = " ".join(self.inline(child) for child in node.children)
        return wrap_text(text, self.options.width, first=f"[{node.number}] ", rest="    ")

    def visit_footnote_ref(self, node: FootnoteRef) -> str:
        return f"[{node.number or '?'}]"

    def visit_strong(self, node: Strong) -> str:
        return self.inline(node).upper()

    def visit_emphasis(self, node: Emphasis) -> str:
        return f"_{self.inline(node)}_"

    def visit_link(self, node: Link) -> str:
        text = self.inline(node)
        return f"{text} <{node.target}>" if node.external and text != node.target else text
