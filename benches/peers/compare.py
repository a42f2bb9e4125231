"""Times ours and each peer in turn on the same exported data, in CPU seconds, and prints Markdown tables. See run.sh.

    compare.py MEASURE DATA ROUNDS
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Before numpy is loaded: one thread, as for our program.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import editdistance
import numpy as np
import rapidfuzz.distance
import tiktoken
import tiktoken_ext.openai_public

import search

MEASURE, DATA, ROUNDS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
# Largest number of windows for each peer, given its speed.
LARGEST = {search.RepoCoderLoop: 50_000, search.Frozensets: 50_000, search.Tantivy: 500_000}


class Ours:
    """The program that answers a line with a timing."""

    def __init__(self):
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen([MEASURE, "serve"], **pipes)

    def __call__(self, work):
        self.process.stdin.write(work + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def read(name):
    return json.loads((DATA / name).read_text())


def read_sets(name, count=None):
    first = np.fromfile(DATA / f"{name}.first.u32", dtype="<u4")
    tokens = np.fromfile(DATA / f"{name}.tokens.u16", dtype="<u2")
    return [tokens[a:b] for a, b in zip(first[:-1], first[1:count and count + 1])]


def timed(run):
    begin = time.process_time()
    result = run()
    return time.process_time() - begin, result


def in_turn(*runs):
    """Medians of the rounds' times, and of the ratios of the last to each of the others."""
    times = []
    for run in runs[:-1]:
        run()  # prepares
    for _ in range(ROUNDS):
        times.append([run() for run in runs])
    medians = [statistics.median(column) for column in zip(*times)]
    ratios = [statistics.median(round[-1] / round[i] for round in times) for i in range(len(runs) - 1)]
    return medians, ratios


def print_row(*cells):
    print("|", " | ".join(cells), "|", flush=True)


def row(what, size, peer_name, unit, ours, run, operations):
    """Ours and a peer's time an operation; returns the peer's answer."""
    answers = []

    def peer():
        seconds, result = timed(run)
        answers[:] = [result]
        return seconds / operations

    (mine, theirs), (ratio,) = in_turn(lambda: ours()["seconds"], peer)
    print_row(what, size, peer_name, show(mine, unit), show(theirs, unit), f"{ratio:,.1f}")
    return answers[0]


def show(seconds, unit):
    if unit == "byte":
        return f"{1e-6 / seconds:.3g} MB/s"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= scale:
            break
    return f"{seconds / scale:.3g} {name}" + (f"/{unit}" if unit else "")


def agree(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: the peer's answer is not ours: {str(theirs)[:200]} and {str(ours)[:200]}")


def search_row(ours, size, name, peer):
    """One query after the other, and all of them at once, beside a peer's time a query."""
    mine = [lambda work=work: ours(f"{work} {size}")["seconds"] for work in ("one-query", "batch")]
    (one, batch, theirs), ratios = in_turn(*mine, peer)
    cells = [f"{ratio:,.1f}" for ratio in ratios]
    print_row(f"{size:,}", name, show(theirs, "query"), show(one, "query"), cells[0], show(batch, "query"), cells[1])


TWINS = {"term-at-a-time": "Rust, tuned inverted index", "sorted-merge": "Rust, sorted merge", "hash-sets": "Rust, hash sets"}


def compare_search(ours, size):
    for twin, name in TWINS.items():
        if size <= 50_000 or twin == "term-at-a-time":
            ours(f"{twin} {size}")  # prepares
            search_row(ours, size, name, lambda: ours(f"{twin} {size}")["seconds"])
    for peer, index, _ in built(size):
        queries, found = read_sets("queries"), read(f"found.{size}.json")
        chosen = range(0, len(queries), len(queries) // peer.queries)
        prepared = [index.prepare(queries[number]) for number in chosen]
        answers = []

        def run():
            seconds, answers[:] = timed(lambda: [index.find(query) for query in prepared])
            return seconds / len(prepared)

        search_row(ours, size, peer.__name__, run)
        for number, hits in zip(chosen, answers) if peer.exact else ():
            scores = [overlap / union for _, overlap, union in found[number]]
            agree(f"{peer.__name__}, query {number}", scores, [score for _, score in hits])


def built(size):
    """Each peer's index with the time that it took."""
    sets = read_sets("windows", size)
    for peer in (search.ScipySparse, search.NumpyIndex, search.Tantivy, search.Frozensets, search.RepoCoderLoop):
        if size <= LARGEST.get(peer, size):
            seconds, index = timed(lambda: peer(sets))
            yield peer, index, seconds


def compare_builds(ours, size):
    for peer, _, seconds in built(size):
        mine = statistics.median(ours(f"index {size}")["seconds"] * size for _ in range(3))
        print_row("index", f"{size:,} windows", peer.__name__, show(mine, ""), show(seconds, ""), f"{seconds / mine:,.1f}")


def compare_tokens(ours):
    ranks = {bytes(token): rank for token, rank in read("ranks.json")}
    special = {"<|endoftext|>": 50_256}
    pattern = tiktoken_ext.openai_public.r50k_pat_str
    p50k = tiktoken.Encoding("p50k", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    for work, name, what in (("files", "files.json", "tokenize files"), ("prompt-counts", "prompts.json", "count prompts")):
        texts = read(name)
        size = sum(len(text.encode()) for text in texts)
        count = row(
            what, f"{size / 1e6:.1f} MB", "tiktoken", "byte", lambda: ours(work),
            lambda: sum(len(p50k.encode_ordinary(text)) for text in texts), size,
        )
        agree(what, ours(work)["result"], count)
    texts = read("window_texts.json")
    count = row(
        "sets of windows", f"{len(texts):,} windows", "tiktoken", "window", lambda: ours("window-sets"),
        lambda: sum(len(set(p50k.encode_ordinary(text))) for text in texts), len(texts),
    )
    agree("sets of windows", ours("window-sets")["result"], count)


def compare_distances(ours):
    for work in ("lines", "bodies"):
        pairs = read(f"{work}.json")
        length = statistics.mean(len(text) for pair in pairs for text in pair)
        for name, distance in (("editdistance", editdistance.eval), ("rapidfuzz", rapidfuzz.distance.Levenshtein.distance)):
            total = row(
                f"edit distance, {work}", f"{len(pairs)} pairs of {length:.0f} characters", name, "pair",
                lambda: ours(work), lambda: sum(distance(a, b) for a, b in pairs), len(pairs),
            )
            agree(name, ours(work)["result"], total)


def main():
    ours = Ours()
    print("| what | size | peer | ours | peer | peer / ours |\n|---|---|---|---|---|---|")
    compare_tokens(ours)
    compare_distances(ours)
    sizes = read("sizes.json")
    compare_builds(ours, sizes[-1])
    print("\n| windows | peer | peer | ours, one query | peer / ours | ours, batch | peer / ours |\n|---|---|---|---|---|---|---|")
    for size in sizes:
        compare_search(ours, size)
    print("\nAnswers agree: counts and sets of ids, distances, and the top-20 scores of all but Tantivy, which ranks by BM25.")


main()
