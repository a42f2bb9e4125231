"""Parser of the markup within paragraphs."""

import re
from typing import Callable, Dict, List, Match, Pattern, Tuple

from quillpad.diagnostics import DiagnosticSink, SourceText, Span
from quillpad.nodes import Code, Emphasis, FootnoteRef, Link, Node, PageLink, Strong, Text

Rule = Tuple[Pattern[str], Callable[[Match[str]], Node]]

_BREAK_SPACE = re.compile(r"[ \t]*\n[ \t]*")


class InlineParser:
    """Parses ranges of a source text into inline nodes."""
    def __init__(self, source: SourceText, sink: DiagnosticSink) -> None:
        self.source = source
        self.sink = sink
        self.rules: Dict[str, List[Rule]] = {
            "\\": [(re.compile(r"\\(?P<char>[^\w\s]|_)"), self._escape)],
            "`": [(re.compile(r"`(?P<body>[^`]+)`"), self._code)],
            "*": [(re.compile(r"\*(?=\S)(?P<body>(?:\\.|[^*\\])+?)(?<=\S)\*"), self._strong)],
            "_": [(re.compile(r"(?<!\w)_(?=\S)(?P<body>(?:\\.|[^_\\])+?)(?<=\S)_(?!\w)"),
                   self._emphasis)],
            "[": [(re.compile(r"\[\[(?P<target>[^\]|\n]+)(?:\|(?P<body>[^\]\n]+))?\]\]"),
                   self._page_link),
                  (re.compile(r"\[\^(?P<label>[\w-]+)\]"), self._footnote_ref),
                  (re.compile(r"\[(?P<body>[^\[\]]*)\]\((?P<target>[^()\s]+)"
                              r"(?:\s+\"(?P<title>[^\"]*)\")?\)"), self._link)],
        }

    def parse(self, start: int, end: int) -> List[Node]:
        """Return the nodes found between two offsets."""
        nodes: List[Node] = []
        text = self.source.text
        position = text_start = start
        while position < end:
            for pattern, build in self.rules.get(text[position], ()):
                match = pattern.match(text, position, end)
                if match is not None:
                    self._flush(nodes, text_start, position)
                    nodes.append(build(match))
                    position = text_start = match.end()
                    break
            else:
                if text[position] == "`":
                    self.sink.warning("Q201", "unbalanced backtick in text",
                                      self.source.span(position, position + 1))
                position += 1
        self._flush(nodes, text_start, end)
        return nodes

    def _flush(self, nodes: List[Node], start: int, end: int) -> None:
        if start < end:
            value = _BREAK_SPACE.sub("\n", self.source.text[start:end])
            nodes.append(Text(value=value, span=self.source.span(start, end)))

    def _body(self, match: Match[str]) -> List[Node]:
        return self.parse(*match.span("body"))

    def _span(self, match: Match[str]) -> Span:
        return self.source.span(match.start(), match.end())

    def _escape(self, match: Match[str]) -> Node:
        return Text(value=match["char"], span=self._span(match))

    def _code(self, match: Match[str]) -> Node:
        return Code(value=match["body"], span=self._span(match))

    def _strong(self, match: Match[str]) -> Node:
        return Strong(self._body(match), self._span(match))

    def _emphasis(self, match: Match[str]) -> Node:
        return Emphasis(self._body(match), self._span(match))

    def _footnote_ref(self, match: Match[str]) -> Node:
        return FootnoteRef(label=match["label"], span=self._span(match))

    def _page_link(self, match: Match[str]) -> Node:
        children = self._body(match) if match["body"] else []
        return PageLink(children, self._span(match), target=match["target"].strip())

    def _link(self, match: Match[str]) -> Node:
        children = self._body(match) or [Text(value=match["target"])]
        return Link(children, self._span(match), target=match["target"], title=match["title"])
