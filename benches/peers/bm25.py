"""Times our BM25 and bm25s on the same chunks and queries in turn, in CPU seconds, and prints a Markdown table. See run.sh.

    bm25.py MEASURE DATA ROUNDS

Ours tokenizes each query; bm25s gets its words. bm25s computes all scores of the index when it is built (its method
"atire", whose idf differs from Okapi's), so the answers are not compared.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Before numpy is loaded: one thread, as for our program.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import bm25s

MEASURE, DATA, ROUNDS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
TOP_K = 10


def main():
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen([MEASURE, "serve"], **pipes)

    def ours(work):
        process.stdin.write(work + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())["seconds"]

    def read(name):
        return json.loads((DATA / name).read_text())

    chunks, queries = read("chunks.json"), read("chunk_queries.json")
    print("\n| BM25, chunks | bm25s | bm25s index | ours, one query | peer / ours |\n|---|---|---|---|---|")
    for size in read("chunk_sizes.json"):
        begin = time.process_time()
        peer = bm25s.BM25(method="atire", k1=1.5, b=0.75)
        peer.index(chunks[:size], show_progress=False)
        built = time.process_time() - begin
        known = [[word for word in query if word in peer.vocab_dict] for query in queries]

        def theirs():
            begin = time.process_time()
            for query in known:
                peer.retrieve([query], k=TOP_K, show_progress=False, n_threads=0)
            return (time.process_time() - begin) / len(known)

        ours(f"bm25 {size}"), theirs()  # prepares
        times = [(ours(f"bm25 {size}"), theirs()) for _ in range(ROUNDS)]
        mine, other = (statistics.median(column) for column in zip(*times))
        ratio = statistics.median(other / mine for mine, other in times)
        print(f"| {size:,} | {other * 1e6:,.0f} µs/query | {built:.2f} s | {mine * 1e6:,.0f} µs/query | {ratio:,.1f} |", flush=True)


main()
