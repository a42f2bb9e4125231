"""Parquet rows of a code corpus → training sequences of a Repoformer, with datatrove.

    python stack.py INPUT WORK TOKENIZER.JSON

Each step is a pipeline whose ranks are shards. A rank that fails or is killed runs again with the same command; the others are
complete. On a cluster, replace LocalPipelineExecutor by SlurmPipelineExecutor, as stack-slurm.py does, or by RayPipelineExecutor: the
steps stay.
"""

import os
import sys

from datatrove.executor import LocalPipelineExecutor
from repoformer.datatrove import Repoformer

SOURCE, WORK, TOKENIZER = sys.argv[1:4]
SHARDS = int(os.environ.get("SHARDS", 8))
WORKERS = int(os.environ.get("WORKERS", 2))
STYLE = "starcoder"
MODEL = "in-context"  # or that of a server, such as bigcode/starcoderbase-1b
SERVER = []  # or: ["--endpoint", "http://localhost:8000"]
LEAVE_OUT_BROKEN = False  # whether to go on without rows that are broken; logs name them
PART = "{part:05d}.jsonl"


def run(name, ranks, *commands):
    executor = LocalPipelineExecutor(
        pipeline=[Repoformer(*command, skipped=LEAVE_OUT_BROKEN) for command in commands],
        tasks=ranks,
        workers=WORKERS,
        logging_dir=f"{WORK}/logs/{name}",
    )
    executor.run()
    # Ray's executor returns also where a rank has failed.
    if executor.get_incomplete_ranks():
        sys.exit(f"{name}: not all ranks are complete; {WORK}/logs/{name} says why")


def main():
    # Rows → shards of repositories, without duplicates.
    run("group", 1, ["group", SOURCE, "-o", f"{WORK}/shards", "--shards", SHARDS, "--language", "python"])

    # Repositories → instances → completions without and with retrieval → labels: a rank for each shard.
    instances, cache = f"{WORK}/instances/{PART}", f"{WORK}/cache/{{part:05d}}"
    data = ["--tasks", instances, "--benchmark", "instances", "--cache-dir", cache, "--mode", "none,given", "--prompt-style", STYLE]
    name = f"{STYLE}-{MODEL.replace('/', '-')}.jsonl"
    base, rag = (f"{cache}/predictions/instances/{mode}-{name}" for mode in ("none", "given"))
    run(
        "label",
        SHARDS,
        ["label", "sample", "--raw", f"{WORK}/shards", "--shard", "{shard}", "-o", instances],
        ["prompt", *data],
        ["complete", *data, "--model", MODEL, *SERVER],
        ["label", "judge", "--instances", instances, "--base", base, "--rag", rag, "-o", f"{WORK}/labels/{PART}"],
    )

    # Labels of all shards → sequences.
    labels = [f"{WORK}/labels/{part:05d}.jsonl" for part in range(1, SHARDS + 1)]
    run(
        "sequences",
        1,
        ["merge", *labels, "-o", f"{WORK}/labels.jsonl"],
        [
            "label", "verbalize", "--labels", f"{WORK}/labels.jsonl", "--prompt-style", STYLE, "--tokenizer", TOKENIZER,
            "-o", f"{WORK}/sequences",
        ],
    )


# Ranks are started by importing this file.
if __name__ == "__main__":
    main()
