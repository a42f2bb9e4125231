#!/usr/bin/env python3
"""Wall seconds, CPU seconds and peak memory of the commands that large corpora and large benchmarks need, on data that is there.

    cargo build --release
    benches/scale.py group STACK... [--workers 1,2]       # of scripts/synthetic-stack.py; also draws instances, see --draw
    benches/scale.py label INSTANCES TOKENIZER.JSON       # what a data set takes from instances to training sequences
    benches/scale.py evaluate REPOS TASKS                 # each stage from windows to the report
    benches/scale.py model --nodes 1,8,64                 # a data set's cost, from what was measured and what you say of GPUs

Each command is a run of the real program, and its memory the largest that the kernel saw (`ru_maxrss`). Of several processes the CPU
seconds are added, and the greatest memory is that of one. Prompts are completed by a server that answers at once, with the prompt's
last line that is not blank; it listens on 127.0.0.1 alone.
"""
import argparse
import asyncio
import json
import os
import pathlib
import re
import shutil
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def start(command, log):
    """A process whose resources are counted."""
    with open(log, "wb") as file:
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), 1), (os.POSIX_SPAWN_DUP2, file.fileno(), 2)]
        return os.posix_spawn(command[0], command, os.environ, file_actions=actions)


def run(name, commands, folder):
    """Runs commands at once, and prints what they took together."""
    begin = time.perf_counter()
    logs = [folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}-{at}.log" for at in range(len(commands))]
    processes = [start([str(word) for word in command], log) for command, log in zip(commands, logs)]
    usages = [os.wait4(process, 0) for process in processes]
    wall = time.perf_counter() - begin
    cpu = sum(usage.ru_utime + usage.ru_stime for _, _, usage in usages)
    peak = max(usage.ru_maxrss for _, _, usage in usages) * 1024
    status = max(os.waitstatus_to_exitcode(status) for _, status, _ in usages)
    last = logs[0].read_text(errors="replace").strip().splitlines()[-1:]
    print(f"{name:24} {wall:8.1f} {cpu:8.1f} {peak / 1e6:9.0f} {status:3}  {''.join(last)[:90]}", flush=True)
    return status


class Answers(asyncio.Protocol):
    """Completions API, with and without streams."""

    def connection_made(self, transport):
        self.transport, self.waiting = transport, b""

    def data_received(self, data):
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"(?i)content-length: *(\d+)", self.waiting[:end])
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.waiting) < whole:
                return
            body, self.waiting = self.waiting[end + 4:whole], self.waiting[whole:]
            self.answer(json.loads(body) if body else {})

    def answer(self, asked):
        lines = [line for line in asked.get("prompt", "")[-2000:].split("\n") if line.strip()]
        choice = {"index": 0, "text": (lines or ["pass"])[-1] + "\n", "finish_reason": "stop"}
        text, kind = json.dumps({"choices": [choice], "data": []}), "application/json"
        if asked.get("stream"):
            text, kind = f"data: {text}\n\ndata: [DONE]\n\n", "text/event-stream"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n"
        self.transport.write((head + text).encode())


def serve():
    """Address of a server in a process of its own, and that process."""
    out, into = os.pipe()
    process = os.fork()
    if process:
        os.close(into)
        return f"http://127.0.0.1:{int(os.read(out, 16))}", process

    async def listen():
        server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
        os.write(into, str(server.sockets[0].getsockname()[1]).encode())
        await server.serve_forever()

    asyncio.run(listen())


def evaluate(options, folder):
    program = options.program
    data = ["--cache-dir", folder / "cache", "--repos-dir", options.repos, "--tasks", options.task_file]
    stages = [(stage, stage, data) for stage in ("window", "vectorize", "search")]
    stages += [(f"prompt {mode}", "prompt", [*data, "--mode", mode]) for mode in ("none", "rg1")]
    address, server = serve()
    model = [*data, "--model", "last-line"]
    asked = [*model, "--endpoint", address, "--concurrency", "16"]
    stages += [(f"complete {mode}", "complete", [*asked, "--mode", mode]) for mode in ("none", "rg1")]
    scores = {mode: folder / f"{mode}.json" for mode in ("none", "rg1")}
    stages += [(f"eval {mode}", "eval", [*model, "--mode", mode, "--per-task", "-o", path]) for mode, path in scores.items()]
    stages += [("eval both, table", "eval", [*model, "--mode", "none,rg1"])]
    stages += [("compare", "compare", [scores["none"], scores["rg1"]])]
    stages += [("report", "report", [*model, "--mode", "none,rg1", "-o", folder / "report"])]
    try:
        for name, command, flags in stages:
            if options.only and name.split()[0] not in options.only.split(","):
                continue
            run(name, [[program, command, *flags]], folder)
    finally:
        os.kill(server, 9)
        os.waitpid(server, 0)
    page = folder / "report/index.html"
    if page.exists():
        print(f"page: {page.stat().st_size / 1e6:.1f} MB")


def label(options, folder):
    program, instances = options.program, options.instances
    data = ["--tasks", instances, "--benchmark", "instances", "--cache-dir", folder / "cache", "--prompt-style", "starcoder"]
    address, server = serve()
    asked = [*data, "--model", "last-line", "--endpoint", address, "--concurrency", "16"]
    base, rag = (folder / f"cache/predictions/instances/{mode}-starcoder-last-line.jsonl" for mode in ("none", "given"))
    try:
        for mode in ("none", "given"):
            run(f"prompt {mode}", [[program, "prompt", "--mode", mode, *data]], folder)
        for mode in ("none", "given"):
            run(f"complete {mode}", [[program, "complete", "--mode", mode, *asked]], folder)
    finally:
        os.kill(server, 9)
        os.waitpid(server, 0)
    judged = ["label", "judge", "--instances", instances, "--base", base, "--rag", rag, "-o", folder / "labels.jsonl"]
    run("label judge", [[program, *judged]], folder)
    sequences = ["--labels", folder / "labels.jsonl", "--tokenizer", options.tokenizer, "-o", folder / "sequences"]
    run("label verbalize", [[program, "label", "verbalize", *sequences]], folder)


def group(options, folder):
    program, draw = options.program, ["label", "sample", "--kind", "chunk", "--max-candidates", "1000"]
    for stack in options.stacks:
        for dedup in options.dedup.split(","):
            grouped = folder / "grouped"
            shutil.rmtree(grouped, ignore_errors=True)
            command = [program, "group", stack / "data", "--dedup", dedup, "--shards", options.shards, "-o", grouped]
            run(f"group {stack.name} {dedup}", [[*command, "--threads", options.threads]], folder)
        if not options.draw:
            continue
        for workers in map(int, options.workers.split(",")):
            shards = [f"{at}/{workers}" for at in range(1, workers + 1)]
            own = [[program, *draw, "--raw", grouped, "--shard", shard, "--threads", "1", "-o", folder / f"drawn-{workers}-{at}.jsonl"]
                   for at, shard in enumerate(shards)]
            run(f"draw {stack.name} {workers}", own, folder)


# Measured: `group` of 18,000 repositories, and `draw` and `label` on the output of `group`.
CPU_MS_A_REPOSITORY = {"group": 6.4}
CPU_MS_AN_INSTANCE = {"label sample": 0.60, "prompt": 0.58, "complete": 2.2, "label judge": 0.29, "label verbalize": 8.7}
KB_A_REPOSITORY = {"shards": 37}
KB_AN_INSTANCE = {"instances": 22.5, "prompts": 16.9, "answers": 14.3, "labels": 22.7, "sequences": 40.2}


def model(options, _):
    repositories, instances = options.repositories, options.instances
    cpu = (sum(CPU_MS_A_REPOSITORY.values()) * repositories + sum(CPU_MS_AN_INSTANCE.values()) * instances) / 3.6e6
    prompt, written = options.prompt_tokens * instances, options.written_tokens * instances
    gpu = (prompt / options.read_speed + written / options.write_speed) / 3600
    disk = (sum(KB_A_REPOSITORY.values()) * repositories + sum(KB_AN_INSTANCE.values()) * instances) / 1e6
    print(f"{repositories:,} repositories, {instances:,} instances: {prompt / 1e6:,.0f} million tokens read and {written / 1e6:,.0f} written")
    print(f"{cpu:.2f} CPU hours, {gpu:.1f} GPU hours, {disk:.0f} GB")
    for nodes in map(int, options.nodes.split(",")):
        cores, gpus = nodes * options.cores, nodes * options.gpus
        print(f"{nodes:3} nodes: {cpu / cores * 60:8.2f} minutes of {cores} cores, {gpu / gpus * 60:8.1f} minutes of {gpus} GPUs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "target/release/repoformer", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("scale"), help="where files are made, and stay")
    kinds = parser.add_subparsers(required=True)
    of_group = kinds.add_parser("group")
    of_group.add_argument("stacks", nargs="+", type=pathlib.Path)
    of_group.add_argument("--dedup", default="exact,near", help="kinds of duplicates; instances are drawn of what the last leaves")
    of_group.add_argument("--shards", default="64")
    of_group.add_argument("--threads", default="2", help="of group; a worker that draws has one")
    of_group.add_argument("--workers", default="1,2")
    of_group.add_argument("--draw", action="store_true", help="also draw instances (label sample)")
    of_group.set_defaults(does=group)
    of_label = kinds.add_parser("label")
    of_label.add_argument("instances", type=pathlib.Path)
    of_label.add_argument("tokenizer", type=pathlib.Path)
    of_label.set_defaults(does=label)
    of_evaluation = kinds.add_parser("evaluate")
    of_evaluation.add_argument("repos", type=pathlib.Path)
    of_evaluation.add_argument("task_file", type=pathlib.Path)
    of_evaluation.add_argument("--only", default="", help="commands, separated by commas")
    of_evaluation.set_defaults(does=evaluate)
    of_model = kinds.add_parser("model")
    of_model.add_argument("--repositories", type=int, default=18_000, help="that group reads")
    of_model.add_argument("--instances", type=int, default=360_000, help="the paper's: 240,000 chunks and 120,000 functions")
    of_model.add_argument("--prompt-tokens", type=float, default=3_275, help="of an instance's two prompts (measured, p50k_base)")
    of_model.add_argument("--written-tokens", type=float, default=79, help="of its two completions: twice the target's (measured)")
    of_model.add_argument("--read-speed", type=float, default=20_000, help="tokens of prompts a second and GPU: an assumption, set yours")
    of_model.add_argument("--write-speed", type=float, default=2_000, help="tokens of completions a second and GPU: an assumption, set yours")
    of_model.add_argument("--cores", type=int, default=32, help="of a node: an assumption")
    of_model.add_argument("--gpus", type=int, default=8, help="of a node: an assumption")
    of_model.add_argument("--nodes", default="1,8,64")
    of_model.set_defaults(does=model)
    options = parser.parse_args()
    if options.does is not model:
        options.folder.mkdir(parents=True, exist_ok=True)
        print("command                      wall      CPU   peak MB exit")
    options.does(options, options.folder)


main()
