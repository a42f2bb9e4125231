"""Scorers for search results."""

import math
from typing import Type

from quillpad.util import Registry

SCORERS: Registry[Type["Scorer"]] = Registry("scorer")


class Scorer:
    """Scores one term in one page, given the statistics of the index."""
    def __init__(self, page_count: int, average_length: float) -> None:
        self.page_count = page_count
        self.average_length = average_length

    def score(self, frequency: int, matching_pages: int, length: int) -> float:
        raise NotImplementedError


@SCORERS.register("tfidf")
class TfIdfScorer(Scorer):
    """Term frequency times inverse document frequency."""
    def score(self, frequency: int, matching_pages: int, length: int) -> float:
        return frequency / max(1, length) * math.log(1 + self.page_count / matching_pages)


@SCORERS.register("bm25")
class Bm25Scorer(Scorer):
    """Okapi BM25 with the usual constants."""
    k1 = 1.5
    b = 0.75

    def score(self, frequency: int, matching_pages: int, length: int) -> float:
        rarity = (self.page_count - matching_pages + 0.5) / (matching_pages + 0.5)
        ratio = length / self.average_length if self.average_length else 1.0
        weight = self.k1 * (1 - self.b + self.b * ratio)
        return math.log(1 + rarity) * frequency * (self.k1 + 1) / (frequency + weight)
