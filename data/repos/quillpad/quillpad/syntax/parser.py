"""Block parser: turns tokens into a document tree."""

from typing import Callable, Dict, List, Optional

from quillpad.diagnostics import DiagnosticSink, SourceText, Span
from quillpad.nodes import (
    BulletList, CodeBlock, Document, FootnoteDefinition, Heading, ListItem, Node, OrderedList,
    Paragraph, TocPlaceholder,
)
from quillpad.syntax.inline import InlineParser
from quillpad.syntax.lexer import Lexer, Token, TokenKind

LIST_KINDS = (TokenKind.BULLET, TokenKind.ORDERED)


class Parser:
    """Recursive descent parser over line tokens; errors go to ``sink``."""
    def __init__(self, sink: Optional[DiagnosticSink] = None) -> None:
        self.sink = sink if sink is not None else DiagnosticSink()
        self.handlers: Dict[TokenKind, Callable[[], Optional[Node]]] = {
            TokenKind.HEADING: self._heading,
            TokenKind.BULLET: self._list,
            TokenKind.ORDERED: self._list,
            TokenKind.FENCE: self._code_block,
            TokenKind.TOC: self._toc,
            TokenKind.FOOTNOTE_DEF: self._footnote,
            TokenKind.TEXT: self._paragraph,
        }

    def parse(self, source: SourceText) -> Document:
        """Parse a whole source text."""
        self.source = source
        self.tokens = Lexer(source, self.sink).tokenize()
        self.index = 0
        self.inline = InlineParser(source, self.sink)
        metadata = {token.data["key"]: self._body(token)
                    for token in self._take_while(TokenKind.META)}
        document = Document(span=source.span(0, len(source.text)), metadata=metadata)
        while self.current.kind is not TokenKind.EOF:
            if self.current.kind is TokenKind.BLANK:
                self._advance()
                continue
            node = self.handlers[self.current.kind]()
            if node is not None:
                document.append(node)
        return document

    @property
    def current(self) -> Token:
        return self.tokens[self.index]

    def _advance(self) -> Token:
        self.index += 1
        return self.tokens[self.index - 1]

    def _take_while(self, kind: TokenKind) -> List[Token]:
        first = self.index
        while self.current.kind is kind:
            self.index += 1
        return self.tokens[first:self.index]

    def _body(self, token: Token) -> str:
        return self.source.text[token.start:token.end]

    def _span(self, token: Token) -> Span:
        return self.source.span(token.start, token.end)

    def _paragraph_at(self, start: int, end: int) -> Paragraph:
        return Paragraph(self.inline.parse(start, end), self.source.span(start, end))

    def _heading(self) -> Node:
        token = self._advance()
        return Heading(self.inline.parse(token.start, token.end), self._span(token),
                       level=len(token.data["marks"]), anchor=token.data["anchor"] or None)

    def _paragraph(self) -> Node:
        lines = self._take_while(TokenKind.TEXT)
        return self._paragraph_at(lines[0].start, lines[-1].end)

    def _code_block(self) -> Node:
        fence = self._advance()
        lines = self._take_while(TokenKind.CODE_LINE)
        if self.current.kind is TokenKind.FENCE:
            self._advance()
        return CodeBlock(value="\n".join(self._body(line) for line in lines),
                         language=fence.data["info"] or None, span=self._span(fence))

    def _list(self) -> Node:
        first = self.current
        node: Node = BulletList(span=self._span(first))
        if first.kind is TokenKind.ORDERED:
            node = OrderedList(span=self._span(first), start=int(first.data["number"]))
        while self.current.kind is first.kind and self.current.indent == first.indent:
            node.append(self._list_item())
        return node

    def _list_item(self) -> ListItem:
        token = self._advance()
        end = token.end
        while self.current.kind is TokenKind.TEXT and self.current.indent > token.indent:
            end = self._advance().end
        item = ListItem([self._paragraph_at(token.start, end)], self._span(token))
        while self.current.kind in LIST_KINDS and self.current.indent > token.indent:
            item.append(self._list())
        return item

    def _footnote(self) -> Node:
        token = self._advance()
        return FootnoteDefinition([self._paragraph_at(token.start, token.end)],
                                  self._span(token), label=token.data["label"])

    def _toc(self) -> Node:
        token = self._advance()
        depth = token.data["depth"]
        return TocPlaceholder(span=self._span(token), depth=int(depth) if depth else None)
