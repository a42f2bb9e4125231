import json
import unittest

from quillpad import convert
from quillpad.config import RenderOptions
from quillpad.errors import RegistryError
from quillpad.render import create_renderer


class RenderTest(unittest.TestCase):
    def check(self, markup, output, to="html", **options):
        rendered = convert(markup, to, render_options=RenderOptions(**options))
        self.assertEqual(rendered, output + "\n")

    def test_html_heading_and_escapes(self):
        self.check("= T", '<h3 id="t">T</h3>', heading_offset=2)
        self.check("a < `b & c`", "<p>a &lt; <code>b &amp; c</code></p>")

    def test_html_list(self):
        self.check("2. a\n3. b", '<ol start="2">\n<li>a</li>\n<li>b</li>\n</ol>')

    def test_text_wraps(self):
        self.check("aaaa bbbb cccc dddd eeee", "aaaa bbbb cccc dddd\neeee", "text", width=20)

    def test_text_nested_list(self):
        self.check("- *a*\n  1. b", "- A\n  1. b", "text")

    def test_text_footnote(self):
        self.check("x[^n]\n\n[^n]: Why.", "x[1]\n\nNotes\n-----\n[1] Why.", "txt")

    def test_latex_escapes(self):
        self.check("50% _of_ a\\_b", r"50\% \emph{of} a\_b", "latex")

    def test_latex_footnote_in_place(self):
        self.check("x[^n]\n\n[^n]: Why.", r"x\footnote{Why.}", "tex")

    def test_json_is_the_tree(self):
        data = json.loads(convert("hi", "json"))
        self.assertEqual(data["children"][0]["kind"], "paragraph")

    def test_unknown_renderer(self):
        with self.assertRaisesRegex(RegistryError, "unknown renderer 'htlm'") as caught:
            create_renderer("htlm")
        self.assertIn("html", caught.exception.hint)
