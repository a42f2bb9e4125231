import tempfile
import unittest
from pathlib import Path

from quillpad.errors import TemplateError
from quillpad.search import SearchIndex, tokenize
from quillpad.templates import Template, TemplateEngine
from quillpad.util import DiskCache, MemoryCache


class TemplateTest(unittest.TestCase):
    def test_escaping_and_filters(self):
        out = TemplateEngine(x="<b>").render("{{ x }}{{ x|safe }}{{ y|default:z }}")
        self.assertEqual(out, "&lt;b&gt;<b>z")

    def test_loop_and_condition(self):
        text = "{% for p in pages %}{% if p.show %}{{ p.name }};{% endif %}{% endfor %}"
        pages = [{"name": "a", "show": True}, {"name": "b"}]
        self.assertEqual(Template(text).render({"pages": pages}), "a;")

    def test_unclosed_block_names_its_line(self):
        with self.assertRaisesRegex(TemplateError, "line 2: if is never closed"):
            Template("\n{% if x %}")


class SearchTest(unittest.TestCase):
    def test_tokenize(self):
        self.assertEqual(tokenize("The Cats and a glass"), ["cat", "glass"])

    def test_ranking_by_each_scorer(self):
        for scorer in ("bm25", "tfidf"):
            index = SearchIndex(scorer)
            index.add("a", "pens and paper")
            index.add("b", "pen pen ink")
            self.assertEqual([hit.url for hit in index.search("pens")], ["b", "a"], scorer)

    def test_replace_and_round_trip(self):
        index = SearchIndex()
        index.add("a", "old words")
        index.add("a", "new words")
        copy = SearchIndex.from_dict(index.to_dict())
        self.assertEqual((copy.search("old"), copy.search("new")[0].excerpt), ([], "new words"))


class UtilTest(unittest.TestCase):
    def test_memory_cache_drops_oldest(self):
        cache = MemoryCache(capacity=2)
        for key in "abac":
            cache.get_or_compute(key, key.upper)
        self.assertEqual((cache.load("a"), cache.load("b"), cache.hits), ("A", None, 1))

    def test_disk_cache_survives_damage(self):
        with tempfile.TemporaryDirectory() as folder:
            DiskCache(Path(folder)).store("k", [1])
            self.assertEqual(DiskCache(Path(folder)).load("k"), [1])
            Path(folder, "k.json").write_text("{")
            self.assertIsNone(DiskCache(Path(folder)).load("k"))
