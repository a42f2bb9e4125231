"""Shards of repositories → completions without and with retrieval → labels, on a Ray cluster with a model server a node.

    python ray_complete.py SHARDS WORK

SHARDS is the folder that `repoformer group` wrote. It and WORK lie on storage that all nodes share. A shard that fails is named at
the end; the same command then goes on with what is missing.
"""

import glob
import os
import shlex
import subprocess
import sys

import ray
from repoformer.command import filled
from repoformer.ray import ModelServer

SOURCE, WORK = map(os.path.abspath, sys.argv[1:3])
SHARDS = len(glob.glob(f"{SOURCE}/shard-*"))
MODEL = os.environ.get("MODEL", "bigcode/starcoderbase-1b")
SERVER = shlex.split(os.environ.get("SERVER", f"vllm serve {MODEL} --host 127.0.0.1 --port {{port}}"))
GPUS = int(os.environ.get("GPUS", 1))  # of a server: as many as a node has make it a server a node
CONCURRENCY = int(os.environ.get("CONCURRENCY", 32))

STYLE = ["--prompt-style", "starcoder", "--cache-dir", f"{WORK}/cache/{{part:05d}}", "--benchmark", "instances"]
ASKED = ["--endpoint", "http://127.0.0.1:{port}", "--model", MODEL, "--concurrency", CONCURRENCY, "--max-tokens", 64]
PART = "{part:05d}.jsonl"
INSTANCES, PREDICTIONS = f"{WORK}/instances/{PART}", f"{WORK}/cache/{{part:05d}}/predictions/instances"
NAME = MODEL.replace("/", "-")
COMMANDS = [
    ["label", "sample", "--raw", SOURCE, "--shard", "{shard}", "-o", INSTANCES],
    ["prompt", "--tasks", INSTANCES, "--mode", "none,given", *STYLE],
    ["complete", "--tasks", INSTANCES, "--mode", "none,given", *STYLE, *ASKED],
    [
        "label", "judge", "--instances", INSTANCES, "-o", f"{WORK}/labels/{PART}",
        "--base", f"{PREDICTIONS}/none-starcoder-{NAME}.jsonl", "--rag", f"{PREDICTIONS}/given-starcoder-{NAME}.jsonl",
    ],
]


def main():
    ray.init()
    servers = int(ray.cluster_resources().get("GPU", 0) // GPUS)
    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = -1  # a shard that is lost leaves the others alone
    context.execution_no_progress_timeout_s = 6 * 3600  # longer than a shard takes
    context.actor_init_retry_on_errors = True  # a server that does not start is started again, three times
    parts = list(range(1, SHARDS + 1))
    shards = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=SHARDS)
    done = shards.map_batches(
        ModelServer,
        fn_constructor_args=[SERVER, COMMANDS, SHARDS, f"{WORK}/logs"],
        batch_size=1,
        num_gpus=GPUS,
        # Two shards at a time: while one ends or begins, the other keeps the server busy.
        compute=ray.data.ActorPoolStrategy(
            size=min(servers, SHARDS), max_tasks_in_flight_per_actor=2, max_concurrent_calls_per_actor=2, enable_true_multi_threading=True
        ),
    )
    failed = dict.fromkeys(parts, "its worker was lost, see above")
    stopped = None
    try:
        for row in done.iter_rows():
            failed[row["part"]] = row["failed"]
    except ray.exceptions.RayError as error:  # such as that of a server that never starts
        stopped = str(error).splitlines()[-1]
    ray.shutdown()
    if stopped:
        sys.exit(stopped)
    failed = {part: why for part, why in failed.items() if why}
    for part, why in failed.items():
        print(f"shard {part}/{SHARDS}: {why}", file=sys.stderr)
    if failed:
        sys.exit(f"{len(failed)} of {SHARDS} shards failed")
    labels = [f"{WORK}/labels/{part:05d}.jsonl" for part in parts]
    subprocess.run(filled(["merge", *labels, "-o", f"{WORK}/labels.jsonl"]), check=True)


if __name__ == "__main__":
    main()
