"""Inverted index over pages."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping

from quillpad.search.ranking import SCORERS
from quillpad.util.text import normalize_space, truncate

_WORD = re.compile(r"\w\w+")
STOP_WORDS = frozenset("an and are as at be by for in is it of on or that the to with".split())


def tokenize(text: str) -> List[str]:
    """Split ``text`` into lower-case terms without stop words and plural endings."""
    words = (word.lower() for word in _WORD.findall(text))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] != "s" else word
            for word in words if word not in STOP_WORDS]


@dataclass(frozen=True)
class SearchHit:
    """One search result."""
    url: str
    score: float
    excerpt: str


class SearchIndex:
    """Maps terms to the pages that contain them."""
    def __init__(self, scorer: str = "bm25") -> None:
        self.scorer_type = SCORERS.get(scorer)
        self.texts: Dict[str, str] = {}
        self.lengths: Dict[str, int] = {}
        self.postings: Dict[str, Dict[str, int]] = defaultdict(dict)

    def add(self, url: str, text: str) -> None:
        """Index a page, replacing an older version of it."""
        for pages in self.postings.values():
            pages.pop(url, None)
        terms = Counter(tokenize(text))
        self.texts[url] = normalize_space(text)
        self.lengths[url] = sum(terms.values())
        for term, count in terms.items():
            self.postings[term][url] = count

    def search(self, query: str, limit: int = 10) -> List[SearchHit]:
        """Return the best pages that contain any term of ``query``."""
        count = len(self.lengths)
        scorer = self.scorer_type(count, sum(self.lengths.values()) / max(1, count))
        scores: Dict[str, float] = defaultdict(float)
        for term in tokenize(query):
            pages = self.postings.get(term, {})
            for url, frequency in pages.items():
                scores[url] += scorer.score(frequency, len(pages), self.lengths[url])
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [SearchHit(url, score, truncate(self.texts[url], 80))
                for url, score in ranked[:limit]]

    def to_dict(self) -> Dict[str, Any]:
        return {"texts": self.texts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], scorer: str = "bm25") -> "SearchIndex":
        index = cls(scorer)
        for url, text in data["texts"].items():
            index.add(url, text)
        return index
