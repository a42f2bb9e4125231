import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from quillpad.cli import main
from quillpad.config import Config
from quillpad.errors import BuildError, ConfigError
from quillpad.site import SiteBuilder


class SiteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("pages/home.quill", "= Home\nSee [[About us]].\n")
        self.write("pages/about.quill", ":title: About us\n\nWe like ink.\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def build(self, **options):
        return SiteBuilder(self.root, Config.from_dict(options)).build()

    def test_pages_and_links(self):
        self.assertEqual(self.build().written, ["about.html", "home.html", "search.json"])
        self.assertIn('<a href="about.html">', (self.root / "public/home.html").read_text())

    def test_assets_are_copied_once(self):
        self.write("assets/a.css", "p {}")
        self.assertEqual([self.build().assets, self.build().assets], [1, 0])

    def test_cache_between_builds(self):
        self.assertEqual(self.build(cache=".cache").cache_hits, 0)
        self.assertEqual(self.build(cache=".cache").cache_hits, 2)

    def test_plugins(self):
        self.write("pages/new.quill", ":draft: yes\n\nSoon.\n")
        self.assertIn("sitemap.txt", self.build(plugins=["drafts", "sitemap"]).written)
        listing = (self.root / "public/sitemap.txt").read_text()
        self.assertEqual(listing, "about.html\nhome.html\n")

    def test_missing_folder(self):
        self.assertRaises(BuildError, self.build, source="nowhere")

    def test_config_errors(self):
        for data in ({"titel": "x"}, {"title": 3}, {"render": {"width": 5}}):
            self.assertRaises(ConfigError, Config.from_dict, data)

    def test_cli(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["render", str(self.root / "pages/home.quill"), "--to", "text"])
            missing = main(["build", "--config", str(self.root / "none.json")])
        self.assertEqual((status, missing), (0, 2))
        self.assertTrue(out.getvalue().startswith("Home\n===="))
        self.assertIn("Q601", err.getvalue())
