"""Rankers of chunks by the words of a query: Jaccard similarity, BM25, TF-IDF."""

import collections
import math

import numpy as np
from texts import word_list


def jaccard(query, documents):
    query = set(word_list(query))
    sets = [set(word_list(document)) for document in documents]
    return np.array([len(words & query) / len(words | query) if words | query else 0.0 for words in sets])


class Bm25:
    """`BM25Okapi` of the Python package rank_bm25, with its defaults."""

    def __init__(self, documents, k1=1.5, b=0.75, epsilon=0.25):
        self.counts = [collections.Counter(word_list(document)) for document in documents]
        lengths = np.array([counts.total() for counts in self.counts])
        self.factor = k1 * (1 - b + b * lengths / lengths.mean())
        self.k1 = k1
        holding = collections.Counter(word for counts in self.counts for word in counts)
        self.weights = {word: math.log(len(documents) - n + 0.5) - math.log(n + 0.5) for word, n in holding.items()}
        least = epsilon * sum(self.weights.values()) / len(self.weights)
        self.weights = {word: weight if weight >= 0 else least for word, weight in self.weights.items()}

    def score(self, query):
        scores = np.zeros(len(self.counts))
        for word in word_list(query):
            if word in self.weights:
                found = np.array([counts[word] for counts in self.counts])
                scores += self.weights[word] * found * (self.k1 + 1) / (found + self.factor)
        return scores


def bm25(query, documents):
    return Bm25(documents).score(query)


def bm25_by_line(weight):
    """The sum of BM25's scores of the query's lines, each times the `weight` of its distance from the hole."""

    def score(query, documents):
        ranker, lines = Bm25(documents), query.split("\n")
        return sum(weight(len(lines) - 1 - number) * ranker.score(line) for number, line in enumerate(lines))

    return score


def tf_idf(query, documents):
    """The cosine of scikit-learn's TF-IDF vectors, fitted on the documents, of words in lower case."""
    texts = [[word.lower() for word in word_list(text)] for text in [*documents, query]]
    numbers = {word: number for number, word in enumerate(sorted({word for text in texts[:-1] for word in text}))}
    counts = np.zeros((len(texts), len(numbers)))
    for row, text in enumerate(texts):
        for word in text:
            if word in numbers:
                counts[row, numbers[word]] += 1
    holding = (counts[:-1] > 0).sum(axis=0)
    vectors = counts * (np.log((1 + len(documents)) / (1 + holding)) + 1)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return vectors[:-1] @ vectors[-1]


def fused(query, documents):
    """The sum of 1 / (60 + rank) over Jaccard similarity and BM25."""
    scores = np.zeros(len(documents))
    for ranker in (jaccard, bm25):
        scores[np.argsort(-ranker(query, documents), kind="stable")] += 1 / (60 + np.arange(1, len(documents) + 1))
    return scores


RANKERS = {
    "jaccard": jaccard,
    "bm25": bm25,
    "bm25-by-line": bm25_by_line(lambda distance: 1),
    "bm25-by-line-reciprocal": bm25_by_line(lambda distance: 1 / (distance + 1)),
    "bm25-by-line-exponential": bm25_by_line(lambda distance: math.exp(-distance)),
    "tf-idf": tf_idf,
    "rrf:jaccard,bm25": fused,
}
