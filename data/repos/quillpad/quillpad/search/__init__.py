"""Full-text search."""

from quillpad.search.index import SearchHit, SearchIndex, tokenize
from quillpad.search.ranking import SCORERS, Bm25Scorer, Scorer, TfIdfScorer
