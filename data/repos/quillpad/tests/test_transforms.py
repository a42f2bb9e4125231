import unittest

from quillpad import parse, process
from quillpad.config import TransformOptions
from quillpad.diagnostics import DiagnosticSink
from quillpad.nodes import FootnoteSection, Heading, Link, build_outline, node_from_dict
from quillpad.transforms import PageResolver


class TransformTest(unittest.TestCase):
    def run_on(self, text, resolver=None, **options):
        self.sink = DiagnosticSink()
        return process(parse(text), TransformOptions(**options), self.sink, resolver)

    def test_anchors_are_unique(self):
        document = self.run_on("= A b\n= A b\n= C {#a-b-2}")
        anchors = [heading.anchor for heading in document.find_all(Heading)]
        self.assertEqual(anchors, ["a-b", "a-b-3", "a-b-2"])

    def test_section_numbers(self):
        document = self.run_on("= A\n== B\n== C\n= D", number_sections=True)
        numbers = [heading.number for heading in document.find_all(Heading)]
        self.assertEqual(numbers, ["1", "1.1", "1.2", "2"])

    def test_footnotes_numbered_by_first_use(self):
        section = self.run_on("x[^b] y[^a]\n\n[^a]: A\n[^b]: B").find_all(FootnoteSection)[0]
        self.assertEqual([note.label for note in section.children], ["b", "a"])

    def test_footnote_problems(self):
        self.run_on("x[^one]\n\n[^on]: A\n[^on]: B")
        self.assertEqual(self.sink.codes(), ["Q501", "Q502", "Q503"])
        self.assertEqual(self.sink.items[1].hint, "did you mean 'on'?")

    def test_missing_page_becomes_text(self):
        self.assertEqual(self.run_on("see [[Other|that]]", PageResolver()).find_all(Link), [])
        self.assertEqual(self.sink.codes(), ["Q601"])

    def test_links(self):
        links = self.run_on("= A\n[x](#a) [y](#b) [z](https://e.org)").find_all(Link)
        self.assertEqual([link.external for link in links], [False, False, True])
        self.assertEqual(self.sink.codes(), ["Q602"])

    def test_toc_respects_depth(self):
        document = self.run_on("::toc 1\n\n= A\n== B\n= C")
        self.assertEqual([link.target for link in document.find_all(Link)], ["#a", "#c"])

    def test_outline_and_round_trip(self):
        document = self.run_on("= A\n=== B\n== C\n\n- x\n- `y`")
        self.assertEqual([e.title for e in build_outline(document)[0].children], ["B", "C"])
        self.assertEqual(node_from_dict(document.to_dict()).to_dict(), document.to_dict())
