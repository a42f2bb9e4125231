"""HTML renderer."""

from typing import Optional

from quillpad.nodes import (
    BulletList, Code, CodeBlock, Emphasis, FootnoteDefinition, FootnoteRef, FootnoteSection,
    Heading, Link, ListItem, Node, OrderedList, Paragraph, Strong,
)
from quillpad.render.base import RENDERERS, Renderer
from quillpad.util.text import escape_html


def element(name: str, content: str, **attributes: Optional[str]) -> str:
    """Return an element; attributes that are None are left out."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f'{key.rstrip("_")}="{escape_html(value)}"')
    return f"<{' '.join(parts)}>{content}</{name}>"


@RENDERERS.register("html", aliases=["htm"])
class HtmlRenderer(Renderer):
    """Renders a fragment, or a page if the ``standalone`` option is set."""
    def escape(self, text: str) -> str:
        return escape_html(text)

    def _block(self, name: str, node: Node, **attributes: Optional[str]) -> str:
        return element(name, f"\n{self.blocks(node)}\n", **attributes)

    def visit_heading(self, node: Heading) -> str:
        number = element("span", node.number, class_="number") + " " if node.number else ""
        return element(f"h{self.heading_level(node)}", number + self.inline(node), id=node.anchor)

    def visit_paragraph(self, node: Paragraph) -> str:
        return element("p", self.inline(node))

    def visit_code_block(self, node: CodeBlock) -> str:
        language = f"language-{node.language}" if node.language else None
        return element("pre", element("code", self.escape(node.value), class_=language))

    def visit_bullet_list(self, node: BulletList) -> str:
        return self._block("ul", node)

    def visit_ordered_list(self, node: OrderedList) -> str:
        return self._block("ol", node, start=str(node.start) if node.start != 1 else None)

    def visit_list_item(self, node: ListItem) -> str:
        # Lists are always tight: the first paragraph gets no element.
        parts = [self.inline(child) if isinstance(child, Paragraph) else self.visit(child)
                 for child in node.children]
        return element("li", "\n".join(parts))

    def visit_footnote_section(self, node: FootnoteSection) -> str:
        return element("section", f"\n{self._block('ol', node)}\n", class_="footnotes")

    def visit_footnote_definition(self, node: FootnoteDefinition) -> str:
        back = element("a", "^", href=f"#fnref-{node.label}")
        text = " ".join(self.inline(child) for child in node.children)
        return element("li", f"{text} {back}", id=f"fn-{node.label}")

    def visit_footnote_ref(self, node: FootnoteRef) -> str:
        link = element("a", str(node.number or "?"), href=f"#fn-{node.label}",
                       id=f"fnref-{node.label}")
        return element("sup", link)

    def visit_strong(self, node: Strong) -> str:
        return element("strong", self.inline(node))

    def visit_emphasis(self, node: Emphasis) -> str:
        return element("em", self.inline(node))

    def visit_code(self, node: Code) -> str:
        return element("code", self.escape(node.value))

    def visit_link(self, node: Link) -> str:
        return element("a", self.inline(node), href=node.target, title=node.title,
                       rel="external" if node.external else None)
