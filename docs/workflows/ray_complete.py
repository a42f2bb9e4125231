"""Shards of repositories → completions without and with retrieval → labels, on a Ray cluster with a model server a node.

    python ray_complete.py SHARDS WORK

SHARDS is the folder that `repoformer group` wrote. It and WORK lie on storage that all nodes share. Shards that fail are named at
the end; the same command then goes on with what is missing. It runs on any node of the cluster.
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
GPUS = int(os.environ.get("GPUS", 1))  # of a server: with as many as a node has, there is a server a node
CONCURRENCY = os.environ.get("CONCURRENCY", "32")  # requests of a shard at once; a server gets those of two

INSTANCES, BASE, RAG, LABELS = (f"{WORK}/{folder}/{{part:05d}}.jsonl" for folder in ("instances", "without", "with", "labels"))
DATA = ["--tasks", INSTANCES, "--benchmark", "instances", "--cache-dir", f"{WORK}/cache/{{part:05d}}", "--prompt-style", "starcoder"]
ASKED = ["--endpoint", "http://127.0.0.1:{port}", "--model", MODEL, "--concurrency", CONCURRENCY, "--max-tokens", "64"]
COMMANDS = [
    ["label", "sample", "--raw", SOURCE, "--shard", "{shard}", "-o", INSTANCES],
    ["prompt", *DATA, "--mode", "none,given"],
    ["complete", *DATA, *ASKED, "--mode", "none", "-o", BASE],
    ["complete", *DATA, *ASKED, "--mode", "given", "-o", RAG],
    ["label", "judge", "--instances", INSTANCES, "--base", BASE, "--rag", RAG, "-o", LABELS],
]


def complete(parts):
    """Why shards failed, by their numbers; an empty text for those that did not."""
    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = -1  # a shard that is lost leaves the others alone
    context.execution_no_progress_timeout_s = 6 * 3600  # longer than any shard takes
    context.actor_init_retry_on_errors = True  # a server that does not start is started again, three times
    servers = int(ray.cluster_resources().get("GPU", 0) // GPUS)
    shards = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    rows = shards.map_batches(
        ModelServer,
        fn_constructor_args=[SERVER, COMMANDS, SHARDS, f"{WORK}/logs"],
        batch_size=1,
        num_gpus=GPUS,
        # Two shards at a time: while one begins or ends, the other keeps the server busy.
        compute=ray.data.ActorPoolStrategy(
            size=min(servers, len(parts)), max_tasks_in_flight_per_actor=2, max_concurrent_calls_per_actor=2,
            enable_true_multi_threading=True,
        ),
    )
    return dict.fromkeys(parts, "its worker was lost, see above") | {row["part"]: row["failed"] for row in rows.iter_rows()}


def main():
    parts, stopped = range(1, SHARDS + 1), None
    ray.init()
    try:
        failed = complete(parts)
    except ray.exceptions.RayError as error:  # a server that never starts
        stopped = str(error).splitlines()[-1]
    ray.shutdown()
    sys.stdout.flush()  # what workers said comes first
    if stopped:
        sys.exit(stopped)
    for part in filter(failed.get, parts):
        print(f"shard {part}/{SHARDS}: {failed[part]}", file=sys.stderr)
    if any(failed.values()):
        sys.exit(f"{sum(map(bool, failed.values()))} of {SHARDS} shards failed")
    labels = [LABELS.format(part=part) for part in parts]
    subprocess.run(filled(["merge", *labels, "-o", f"{WORK}/labels.jsonl"]), check=True)


if __name__ == "__main__":
    main()
