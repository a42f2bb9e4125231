import unittest

from quillpad import parse
from quillpad.diagnostics import DiagnosticSink, Position, SourceText, format_diagnostics
from quillpad.nodes import Code, Emphasis, FootnoteRef, Link, OrderedList, Strong
from quillpad.syntax import Lexer, TokenKind


class LexerTest(unittest.TestCase):
    def kinds(self, text):
        return [token.kind for token in Lexer(SourceText(text), DiagnosticSink()).tokenize()]

    def test_metadata_only_in_header(self):
        expected = [TokenKind.META, TokenKind.BLANK, TokenKind.TEXT, TokenKind.EOF]
        self.assertEqual(self.kinds(":a: 1\n\n:b: 2"), expected)

    def test_fence_hides_markup(self):
        self.assertEqual(self.kinds("```\n= x\n```")[1], TokenKind.CODE_LINE)

    def test_crlf_and_positions(self):
        self.assertEqual(SourceText("a\r\nbc").position_at(3), Position(2, 2))


class ParserTest(unittest.TestCase):
    def test_heading_with_anchor(self):
        heading = parse("== Some *title* {#here}").children[0]
        self.assertEqual((heading.level, heading.anchor), (2, "here"))
        self.assertEqual(heading.text_content(), "Some title")

    def test_metadata_and_title(self):
        self.assertEqual(parse(":title: Given\n= Other").title, "Given")
        self.assertEqual(parse("= Other").title, "Other")

    def test_nested_lists(self):
        outer = parse("- a\n  more\n  3. b\n  4. c\n- d").children[0]
        self.assertEqual(len(outer.children), 2)
        inner = outer.find_all(OrderedList)[0]
        self.assertEqual((inner.start, len(inner.children)), (3, 2))

    def test_inline_markup(self):
        paragraph = parse("*a _b_* `c*` [d](e \"f\") [^g] snake_case_name").children[0]
        for node_type in (Strong, Emphasis, Code, Link, FootnoteRef):
            self.assertEqual(len(paragraph.find_all(node_type)), 1, node_type)
        self.assertEqual(paragraph.find_all(Link)[0].title, "f")

    def test_escapes(self):
        self.assertEqual(parse(r"\*plain\*").text_content(), "*plain*")

    def test_unclosed_fence_is_reported(self):
        sink = DiagnosticSink()
        self.assertEqual(parse("```py\nx = 1", sink=sink).children[0].value, "x = 1")
        self.assertEqual(sink.codes(), ["Q101"])

    def test_excerpt_points_at_backtick(self):
        sink = DiagnosticSink()
        parse("ab ` c", "f.quill", sink)
        lines = format_diagnostics(sink, SourceText("ab ` c", "f.quill")).split("\n")
        self.assertTrue(lines[0].startswith("f.quill:1:4: warning Q201"))
        self.assertEqual(lines[2], "       ^")
