#!/usr/bin/env python3
"""Times RepoCoder's released programs and ours on the same tasks, one after the other, in CPU seconds: windows to prompts, rg1 and gt.

    git clone CodeT, microsoft's repository with RepoCoder      # commit c1ae5d6e
    pip install numpy==2.1.3 scipy==1.14.1 tiktoken==0.8.0 tqdm==4.67.1
    benches/peers/repocoder.py CodeT/RepoCoder REPOS_DIR TASKS [BINARY] [ROUNDS]

REPOS_DIR holds the repositories of the tasks. Our program runs before and after theirs (ROUNDS times each), on two threads.
Their programs are changed in two places: the windows of the ground truth get a separate path, as the later programs expect, and
the tokenizer reads its table from this project. An empty module replaces `transformers`.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]

THEIRS = """
import base64, sys, types
sys.modules["transformers"] = types.SimpleNamespace(AutoTokenizer=None)
sys.path.insert(0, sys.argv[1])
import tiktoken, tiktoken_ext.openai_public
table = [line.split() for line in open(sys.argv[2])]
p50k = tiktoken.Encoding("p50k", pat_str=tiktoken_ext.openai_public.r50k_pat_str, mergeable_ranks={base64.b64decode(text): int(rank) for text, rank in table},
                         special_tokens={"<|endoftext|>": 50256})
import utils
utils.CodexTokenizer.__init__ = lambda self: setattr(self, "tokenizer", p50k)
from utils import CONSTANTS, CodexTokenizer
import make_window, build_vector, search_code, build_prompt

ground_truth = make_window.GroundTruthWindowMaker.build_window
def build_window(self):
    make_window.CONSTANTS = types.SimpleNamespace(rg=CONSTANTS.gt)
    ground_truth(self)
    make_window.CONSTANTS = CONSTANTS
make_window.GroundTruthWindowMaker.build_window = build_window

repos, benchmark = sys.argv[3:], CONSTANTS.line_benchmark
make_window.MakeWindowWrapper(None, repos, [20], [2]).window_for_repo_files()
make_window.MakeWindowWrapper(benchmark, repos, [20], [2]).window_for_baseline_and_ground()
vectors = build_vector.BuildVectorWrapper(benchmark, build_vector.BagOfWords, repos, [20], [2])
vectors.vectorize_repo_windows()
vectors.vectorize_baseline_and_ground_windows()
search_code.CodeSearchWrapper("one-gram", benchmark, repos, [20], [2]).search_baseline_and_ground()
for mode in [CONSTANTS.rg, CONSTANTS.gt]:
    build_prompt.BuildPromptWrapper("one-gram", benchmark, repos, 20, 2, CodexTokenizer).build_first_search_prompt(mode, mode + ".jsonl")
"""


def seconds(commands, folder, highest_status):
    """CPU seconds of processes and of the children that they waited for."""
    before = os.times()
    for command in commands:
        status = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if status.returncode > highest_status:
            sys.exit(status.stderr)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    clone, repos, tasks = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    binary = pathlib.Path(sys.argv[4] if len(sys.argv) > 4 else PROJECT / "target/release/repoformer").resolve()
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    names = sorted(path.name for path in repos.iterdir() if path.is_dir())

    def ours():
        with tempfile.TemporaryDirectory() as folder:
            flags = ["--quiet", "--repos-dir", repos, "--tasks", tasks, "--threads", "2"]
            stages = [[binary, stage, *flags] for stage in ("window", "vectorize", "search")]
            # 1: some records were left out.
            return seconds([*stages, [binary, "prompt", *flags, "--mode", "rg1,gt"]], folder, 1)

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "datasets").mkdir()
        (work / "datasets/random-line-completion.test.jsonl").symlink_to(tasks)
        (work / "repositories").mkdir()
        (work / "repositories/line_and_api_level").symlink_to(repos)
        own = [ours() for _ in range(rounds)]
        theirs = seconds([[sys.executable, "-c", THEIRS, clone, PROJECT / "crates/text/data/p50k_base.tiktoken", *names]], work, 0)
        own += [ours() for _ in range(rounds)]
    middle = statistics.median(own)
    print("| RepoCoder, CPU s | ours, CPU s | RepoCoder / ours |\n|---|---|---|")
    print(f"| {theirs:.0f} | {middle:.2f} ({min(own):.2f} to {max(own):.2f}) | {theirs / middle:,.0f} |")


if __name__ == "__main__":
    main()
