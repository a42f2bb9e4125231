"""LaTeX renderer."""

from quillpad.nodes import (
    BulletList, Code, CodeBlock, Document, Emphasis, FootnoteDefinition, FootnoteRef,
    FootnoteSection, Heading, Link, ListItem, Node, OrderedList, Paragraph, Strong,
)
from quillpad.render.base import RENDERERS, Renderer

_ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{char: "\\" + char for char in "&%$#_{}"},
}
_SECTIONS = ["section", "subsection", "subsubsection", "paragraph", "subparagraph"]


@RENDERERS.register("latex", aliases=["tex"])
class LatexRenderer(Renderer):
    """Renders the body of an article."""
    block_separator = "\n\n"

    def visit_document(self, node: Document) -> str:
        self.footnotes = {item.label: item for item in node.find_all(FootnoteDefinition)}
        return self.blocks(node)

    def escape(self, text: str) -> str:
        return "".join(_ESCAPES.get(char, char) for char in text)

    def _environment(self, name: str, body: str) -> str:
        return f"\\begin{{{name}}}\n{body}\n\\end{{{name}}}"

    def _items(self, node: Node) -> str:
        return "\n".join(self.visit(child) for child in node.children)

    def visit_heading(self, node: Heading) -> str:
        command = _SECTIONS[min(self.heading_level(node), len(_SECTIONS)) - 1]
        label = f"\\label{{{node.anchor}}}" if node.anchor else ""
        return f"\\{command}{{{self.inline(node)}}}{label}"

    def visit_paragraph(self, node: Paragraph) -> str:
        return self.inline(node)

    def visit_code_block(self, node: CodeBlock) -> str:
        return self._environment("verbatim", node.value)

    def visit_bullet_list(self, node: BulletList) -> str:
        return self._environment("itemize", self._items(node))

    def visit_ordered_list(self, node: OrderedList) -> str:
        body = self._items(node)
        if node.start != 1:
            body = f"\\setcounter{{enumi}}{{{node.start - 1}}}\n{body}"
        return self._environment("enumerate", body)

    def visit_list_item(self, node: ListItem) -> str:
        return "\\item " + self._items(node)

    def visit_footnote_section(self, node: FootnoteSection) -> str:
        return ""  # each note is written where it is first referred to

    def visit_footnote_ref(self, node: FootnoteRef) -> str:
        definition = self.footnotes.pop(node.label, None)
        if definition is None:
            return f"\\footnotemark[{node.number or 0}]"
        return f"\\footnote{{{self.blocks(definition)}}}"

    def visit_strong(self, node: Strong) -> str:
        return f"\\textbf{{{self.inline(node)}}}"

    def visit_emphasis(self, node: Emphasis) -> str:
        return f"\\emph{{{self.inline(node)}}}"

    def visit_code(self, node: Code) -> str:
        return f"\\texttt{{{self.escape(node.value)}}}"

    def visit_link(self, node: Link) -> str:
        if node.target.startswith("#"):
            return f"\\hyperref[{node.target[1:]}]{{{self.inline(node)}}}"
        return f"\\href{{{self.escape(node.target)}}}{{{self.inline(node)}}}"
