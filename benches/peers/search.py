"""Top-20 retrieval by other means: each class is built from token sets and finds (window, score) for a query, best first."""

import numpy as np
import scipy.sparse
import tantivy

TOP_K = 20


class RepoCoderLoop:
    """As the reference does it: both sets are made anew from lists for every pair, then all scores are sorted."""

    queries = 2
    exact = True

    def __init__(self, sets):
        self.lists = [tokens.tolist() for tokens in sets]

    def prepare(self, query):
        return query.tolist()

    def find(self, query):
        scored = []
        for window, tokens in enumerate(self.lists):
            a, b = set(query), set(tokens)
            scored.append((window, len(a & b) / len(a | b)))
        return sorted(scored, key=lambda pair: pair[1], reverse=True)[:TOP_K]


class Frozensets:
    """The same with every set made once, and the union by arithmetic."""

    queries = 3
    exact = True

    def __init__(self, sets):
        self.sets = [frozenset(tokens.tolist()) for tokens in sets]

    def prepare(self, query):
        return frozenset(query.tolist())

    def find(self, query):
        size, scored = len(query), []
        for window, tokens in enumerate(self.sets):
            common = len(query & tokens)
            scored.append((common / (size + len(tokens) - common), window))
        scored.sort(reverse=True)
        return [(window, score) for score, window in scored[:TOP_K]]


def _best(overlaps, sizes, query_size):
    scores = overlaps / (sizes + query_size - overlaps)
    best = np.argpartition(scores, -TOP_K)[-TOP_K:]
    best = best[np.argsort(-scores[best])]
    return list(zip(best.tolist(), scores[best].tolist()))


class ScipySparse:
    """Overlaps as a product of sparse matrices, a query's row with the transposed windows."""

    queries = 20
    exact = True

    def __init__(self, sets):
        self.sizes = np.array([len(tokens) for tokens in sets], dtype=np.int32)
        first = np.concatenate([[0], np.cumsum(self.sizes)])
        tokens = np.concatenate(sets).astype(np.int32)
        ones = np.ones(len(tokens), dtype=np.int32)
        self.width = int(tokens.max()) + 1
        windows = scipy.sparse.csr_matrix((ones, tokens, first), shape=(len(sets), self.width))
        self.transposed = windows.T.tocsr()

    def prepare(self, query):
        known = query[query < self.width].astype(np.int32)
        row = (np.ones(len(known), dtype=np.int32), known, [0, len(known)])
        return scipy.sparse.csr_matrix(row, shape=(1, self.width)), len(query)

    def find(self, query):
        row, size = query
        return _best((row @ self.transposed).toarray()[0], self.sizes, size)


class NumpyIndex:
    """What a careful user of numpy writes: an inverted index in two arrays, overlaps by counting."""

    queries = 20
    exact = True

    def __init__(self, sets):
        self.sizes = np.array([len(tokens) for tokens in sets], dtype=np.int32)
        tokens = np.concatenate(sets)
        order = np.argsort(tokens, kind="stable")
        self.windows = np.repeat(np.arange(len(sets), dtype=np.int32), self.sizes)[order]
        self.first = np.searchsorted(tokens[order], np.arange(65_537))

    def prepare(self, query):
        return query

    def find(self, query):
        lists = [self.windows[self.first[token] : self.first[token + 1]] for token in query.astype(int)]
        overlaps = np.bincount(np.concatenate(lists), minlength=len(self.sizes))
        return _best(overlaps, self.sizes, len(query))


class Tantivy:
    """A search engine, index in memory, one segment writer: any of the query's tokens, ranked by BM25 and not by Jaccard."""

    queries = 20
    exact = False

    def __init__(self, sets):
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("tokens", stored=False, index_option="freq")
        self.index = tantivy.Index(schema.build())
        writer = self.index.writer(heap_size=1_000_000_000, num_threads=1)
        for tokens in sets:
            writer.add_document(tantivy.Document(tokens=" ".join(map(str, tokens.tolist()))))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def prepare(self, query):
        return self.index.parse_query(" ".join(map(str, query.tolist())), ["tokens"])

    def find(self, query):
        return self.searcher.search(query, TOP_K).hits
