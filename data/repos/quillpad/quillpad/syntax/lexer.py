"""Line based lexer: every source line becomes one token."""

import enum
import re
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional

from quillpad.diagnostics import DiagnosticSink, SourceText


class TokenKind(enum.Enum):
    """What a line is."""
    META = r":(?P<key>[a-z][\w-]*):\s*(?P<body>.*)$"
    HEADING = r"(?P<marks>={1,6})\s+(?P<body>.*?)\s*(?:\{#(?P<anchor>[\w-]+)\})?\s*$"
    BULLET = r"\s*[-*]\s+(?P<body>\S.*)$"
    ORDERED = r"\s*(?P<number>\d{1,4})\.\s+(?P<body>\S.*)$"
    TOC = r"::toc(?:\s+(?P<depth>[1-6]))?\s*$"
    FOOTNOTE_DEF = r"\[\^(?P<label>[\w-]+)\]:\s+(?P<body>.*)$"
    FENCE = r"```\s*(?P<info>[\w+-]*)\s*$"
    BLANK = r"\s*$"
    TEXT = r"\s*(?P<body>\S.*)$"
    CODE_LINE = r"(?P<body>.*)$(?#only within fences)"
    EOF = r"(?!)"


_PATTERNS = {kind: re.compile(kind.value) for kind in TokenKind}


@dataclass(frozen=True)
class Token:
    """A classified line; ``start`` and ``end`` delimit its body in the source."""
    kind: TokenKind
    start: int
    end: int
    indent: int = 0
    data: Dict[str, str] = field(default_factory=dict)


class Lexer:
    """Turns a source text into tokens."""
    def __init__(self, source: SourceText, sink: DiagnosticSink) -> None:
        self.source = source
        self.sink = sink

    def tokenize(self) -> List[Token]:
        return list(self._tokens())

    def _tokens(self) -> Iterator[Token]:
        fence: Optional[Token] = None
        in_header = True
        for offset, line in self.source.lines():
            if fence is not None:
                token = self._match(TokenKind.FENCE, offset, line)
                if token is not None and not token.data["info"]:
                    fence = None
                yield token if fence is None and token else Token(
                    TokenKind.CODE_LINE, offset, offset + len(line))
                continue
            token = self._classify(offset, line, in_header)
            in_header = token.kind is TokenKind.META
            if token.kind is TokenKind.FENCE:
                fence = token
            yield token
        if fence is not None:
            self.sink.error("Q101", "code block is never closed",
                            self.source.span(fence.start, fence.end), hint="add a ``` line")
        end = len(self.source.text)
        yield Token(TokenKind.EOF, end, end)

    def _classify(self, offset: int, line: str, in_header: bool) -> Token:
        for kind in TokenKind:
            if kind is TokenKind.META and not in_header:
                continue
            token = self._match(kind, offset, line)
            if token is not None:
                return token
        raise AssertionError("TEXT and BLANK match every line")

    def _match(self, kind: TokenKind, offset: int, line: str) -> Optional[Token]:
        match = _PATTERNS[kind].match(line)
        if match is None:
            return None
        groups = match.groupdict()
        start, end = match.span("body" if "body" in groups else 0)
        end = start + len(line[start:end].rstrip())
        indent = len(line) - len(line.lstrip())
        data = {name: value or "" for name, value in groups.items() if name != "body"}
        return Token(kind, offset + start, offset + end, indent, data)
