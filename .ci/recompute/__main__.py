"""Recomputes the program's results for the sample repositories, and compares them value by value.

python .ci/recompute PROGRAM FOLDER

Windows, ranks, prompts, scores, intervals, policies and training sequences are computed as the papers of RepoCoder and
Repoformer, their released programs and docs/ define them, without reading the program's code. Then errors are planted in each
kind of result, one at a time; the comparison must notice every one.
"""

import pathlib
import sys
import time

import compare_chunks
import compare_labels
import compare_scores
import compare_windows
import retrieval
from program import PROJECT, REPOSITORIES, Program, write
from texts import P50kBase


def main():
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True)
    program = Program(binary, folder)
    tokens = P50kBase(PROJECT / "crates/text/data/p50k_base.tiktoken")
    repositories = {path.name: retrieval.Repository.read(path) for path in sorted(REPOSITORIES.iterdir())}
    started, passed, counted, planted, missed = time.monotonic(), True, 0, 0, []
    for part in parts(program, repositories, tokens):
        passed &= part.compare()
        counted += len(part.expected)
        planted += len(part.damages)
        missed += part.undetected()
    print(f"{counted} values in {time.monotonic() - started:.0f} s; of {planted} planted errors {len(missed)} not noticed")
    for name in missed:
        print(f"a planted error is not noticed: {name}")
    sys.exit(not passed or bool(missed))


def parts(program, repositories, tokens):
    path = program.folder / "holes.jsonl"
    tasks = compare_windows.sample_tasks(path, "line", {"parcelflow": 60, "quillpad": 45, "tidewatch": 30})
    default, reference = retrieval.WindowSettings(), retrieval.WindowSettings(strict=False)
    yield from compare_windows.window_parts(program, REPOSITORIES, repositories, tokens, tasks, path, "default", default, [])
    yield from compare_windows.window_parts(
        program, REPOSITORIES, repositories, tokens, tasks, path, "repocoder", reference, ["--profile", "repocoder"]
    )
    yield from compare_windows.odd_file_parts(program, tokens)
    for kind in ("line", "api", "chunk"):
        yield from compare_scores.score_parts(program, kind)
    yield from compare_scores.interval_parts(program)
    yield from compare_chunks.chunk_parts(program, repositories, tokens, "line", 20, (1024, 512, 512))
    yield from compare_chunks.chunk_parts(program, repositories, tokens, "function", 50, (1024, 512, 512))
    some = write(program.folder / "some.jsonl", tasks[::3])
    yield from compare_chunks.ranker_parts(program, repositories, tokens, tasks[::3], some)
    yield from compare_chunks.instance_parts(program, repositories)
    yield from compare_labels.label_parts(program)
    yield from compare_labels.sweep_parts(program, program.folder / "labels/labels.jsonl")


main()
